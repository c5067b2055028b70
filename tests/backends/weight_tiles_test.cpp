// Weights in tiles against oneDNN's own reorders.
#include "backends/cpu/weight_tiles.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace regatta::cpu {
namespace {

using dnnl::memory;
using tag = memory::format_tag;

struct Weights {
  WeightCounts counts;
  std::int64_t block;

  memory::dims padded() const {
    const auto whole = [&](std::int64_t n) { return (n + block - 1) / block * block; };
    const std::int64_t side = counts.pixels == 9 ? 3 : 1;
    return {whole(counts.outputs), whole(counts.inputs), side, counts.pixels / side};
  }
  std::size_t size() const {
    return static_cast<std::size_t>(counts.outputs * counts.inputs * counts.pixels);
  }
  std::vector<float> numbered() const {
    std::vector<float> values(size());
    std::iota(values.begin(), values.end(), 1.0f);
    return values;
  }
};

std::vector<float> packed_by_onednn(const Weights& weights, const memory::desc& tiles) {
  const memory::dims dims = weights.padded();
  const memory::desc plain(dims, memory::data_type::f32, tag::oihw);
  std::vector<float> padded(plain.get_size() / sizeof(float)), packed(padded.size(), -1.0f);
  const std::vector<float> values = weights.numbered();
  const auto& [outputs, inputs, pixels] = weights.counts;
  for (std::int64_t o = 0; o < outputs; ++o)
    std::copy_n(values.data() + o * inputs * pixels, inputs * pixels,
                padded.data() + o * dims[1] * pixels);
  memory from(plain, engine(), padded.data()), to(tiles, engine(), packed.data());
  dnnl::reorder(from, to).execute(stream(), from, to);
  stream().wait();
  return packed;
}

TEST(WeightTiles, LieAsOneDnnWouldLayThem) {
  for (const auto& [name, block] :
       {std::pair{tag::OIhw16i16o, 16}, std::pair{tag::OIhw16o16i, 16},
        std::pair{tag::IOhw16o16i, 16}, std::pair{tag::OIhw8i8o, 8}, std::pair{tag::OIhw8o8i, 8}})
    for (const WeightCounts counts :
         {WeightCounts{32, 48, 1}, WeightCounts{16, 32, 9}, WeightCounts{19, 37, 9},
          WeightCounts{40, 5, 1}, WeightCounts{7, 33, 5}}) {
      const Weights weights{counts, block};
      const memory::desc desc(weights.padded(), memory::data_type::f32, name);
      const auto tiles = WeightTiles::of(desc, counts);
      ASSERT_TRUE(tiles);
      const std::vector<float> values = weights.numbered();
      std::vector<float> packed(desc.get_size() / sizeof(float), -1.0f);
      tiles->pack(values.data(), packed.data());
      EXPECT_EQ(packed, packed_by_onednn(weights, desc));

      std::vector<float> plain(weights.size(), -1.0f);
      tiles->unpack(packed.data(), plain.data(), false);
      EXPECT_EQ(plain, values);
      tiles->unpack(packed.data(), plain.data(), true);
      for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_EQ(plain[i], 2 * values[i]);
    }
}

TEST(WeightTiles, LeaveOtherFormsToOneDnn) {
  for (const tag name : {tag::oihw, tag::Ohwi16o, tag::hwio})
    EXPECT_FALSE(
        WeightTiles::of(memory::desc({16, 16, 3, 3}, memory::data_type::f32, name), {16, 16, 9}));
}

}  // namespace
}  // namespace regatta::cpu
