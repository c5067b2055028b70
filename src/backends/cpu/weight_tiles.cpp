#include "backends/cpu/weight_tiles.h"

#include <algorithm>

#include "backends/cpu/parallel.h"
#include "backends/cpu/vector.h"

namespace regatta::cpu {
namespace {

using Order = WeightTiles::Order;

enum class Way { pack, write, add };

// A row of output tiles: one for each input tile and pixel. `used`: outputs that are not padding.
// The way says which side is written.
struct TileRow {
  float *plain, *tiles;
  std::int64_t used, next_tile;  // floats from the tiles of one input block to those of the next
};

// PIXELS is 0 where only `pixels` knows; then and in the last tile of a row loops have no fixed
// lengths.
template <int BLOCK, int PIXELS, Way WAY>
REGATTA_INLINE void move_row(const WeightCounts& counts, bool inputs_inner, const TileRow& row) {
  const std::int64_t pixels = PIXELS ? PIXELS : counts.pixels;
  const std::int64_t input_step = inputs_inner ? 1 : BLOCK, output_step = inputs_inner ? BLOCK : 1;
  const auto move_tiles = [&](float* plain, float* tiles, std::int64_t outputs, std::int64_t inputs)
      __attribute__((always_inline)) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      float* to = plain + o * counts.inputs * pixels;
      for (std::int64_t i = 0; i < inputs; ++i)
        for (std::int64_t k = 0; k < pixels; ++k) {
          float& stored = to[i * pixels + k];
          float& tiled = tiles[(k * BLOCK * BLOCK) + i * input_step + o * output_step];
          if (WAY == Way::pack) tiled = stored;
          if (WAY == Way::write) stored = tiled;
          if (WAY == Way::add) stored += tiled;
        }
    }
  };
  float* tiles = row.tiles;
  for (std::int64_t first = 0; first < counts.inputs; first += BLOCK, tiles += row.next_tile) {
    const std::int64_t inputs = std::min<std::int64_t>(BLOCK, counts.inputs - first);
    float* plain = row.plain + first * pixels;
    if (inputs == BLOCK && row.used == BLOCK) {
      move_tiles(plain, tiles, BLOCK, BLOCK);
    } else {
      if (WAY == Way::pack) std::fill_n(tiles, BLOCK * BLOCK * pixels, 0.0f);
      move_tiles(plain, tiles, row.used, inputs);
    }
  }
}

template <Way WAY>
REGATTA_INLINE void move_row_of(const Order& order, const WeightCounts& counts,
                                const TileRow& row) {
  const auto by_pixels = [&]<int BLOCK>() __attribute__((always_inline)) {
    if (counts.pixels == 1)
      move_row<BLOCK, 1, WAY>(counts, order.inputs_inner, row);
    else if (counts.pixels == 9)
      move_row<BLOCK, 9, WAY>(counts, order.inputs_inner, row);
    else
      move_row<BLOCK, 0, WAY>(counts, order.inputs_inner, row);
  };
  if (order.block == 16)
    by_pixels.template operator()<16>();
  else
    by_pixels.template operator()<8>();
}

REGATTA_CLONES void pack_row(const Order& order, const WeightCounts& counts, const TileRow& row) {
  move_row_of<Way::pack>(order, counts, row);
}
REGATTA_CLONES void write_row(const Order& order, const WeightCounts& counts, const TileRow& row) {
  move_row_of<Way::write>(order, counts, row);
}
REGATTA_CLONES void add_row(const Order& order, const WeightCounts& counts, const TileRow& row) {
  move_row_of<Way::add>(order, counts, row);
}

void for_each_row(const Order& order, const WeightCounts& counts, float* plain, float* tiles,
                  void (*move)(const Order&, const WeightCounts&, const TileRow&)) {
  const std::int64_t output_blocks = (counts.outputs + order.block - 1) / order.block;
  const std::int64_t input_blocks = (counts.inputs + order.block - 1) / order.block;
  const std::int64_t tile = counts.pixels * order.block * order.block;
  const std::int64_t next_row = order.inputs_outer ? tile : input_blocks * tile;
  const std::int64_t next_tile = order.inputs_outer ? output_blocks * tile : tile;
  parallel_for(output_blocks, input_blocks * tile, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b)
      move(order, counts,
           {plain + b * order.block * counts.inputs * counts.pixels, tiles + b * next_row,
            std::min<std::int64_t>(order.block, counts.outputs - b * order.block), next_tile});
  });
}

}  // namespace

std::optional<WeightTiles> WeightTiles::of(const dnnl::memory::desc& desc,
                                           const WeightCounts& counts) {
  using tag = dnnl::memory::format_tag;
  struct Form {
    tag name;
    Order order;
  };
  static constexpr Form forms[] = {
      {tag::OIhw16i16o, {16, false, false}}, {tag::OIhw16o16i, {16, false, true}},
      {tag::IOhw16o16i, {16, true, true}},   {tag::OIhw8i8o, {8, false, false}},
      {tag::OIhw8o8i, {8, false, true}},
  };
  const dnnl::memory::dims dims = dims_of(desc);
  if (dims.size() != 4) return std::nullopt;
  for (const Form& form : forms)
    if (desc == dnnl::memory::desc(dims, dnnl::memory::data_type::f32, form.name))
      return WeightTiles(form.order, counts);
  return std::nullopt;
}

void WeightTiles::pack(const float* plain, float* tiles) const {
  for_each_row(order_, counts_, const_cast<float*>(plain), tiles, pack_row);
}

void WeightTiles::unpack(const float* tiles, float* plain, bool add) const {
  for_each_row(order_, counts_, plain, const_cast<float*>(tiles), add ? add_row : write_row);
}

}  // namespace regatta::cpu
