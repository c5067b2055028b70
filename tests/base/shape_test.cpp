#include "base/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_text.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

TEST(Shape, ReadsWhatItPrints) {
  for (const char* text : {"10", "3x32x32", "64x3x7x7"}) EXPECT_EQ(Shape::parse(text).text(), text);
  EXPECT_EQ(Shape::parse("3x32x16"), (Shape{3, 32, 16}));
}

TEST(Shape, QuotesATextItCannotRead) {
  for (const char* text : {"", "x", "3x", "x3", "3x32x", "3xx32", "3x-1", "3x0", "3x1.5", "3X32",
                           "1x2x3x4x5", "99999999999999999999", " 3"}) {
    const std::string error = error_text([&] { Shape::parse(text); });
    EXPECT_THAT(error, HasSubstr("shape '" + std::string(text) + "'")) << text;
    EXPECT_THAT(error, HasSubstr("3x32x32")) << text;
  }
}

TEST(Shape, AnImageHasChannelsHeightAndWidth) {
  const Shape image{3, 32, 16};
  EXPECT_EQ(image.channels(), 3);
  EXPECT_EQ(image.height(), 32);
  EXPECT_EQ(image.width(), 16);
  EXPECT_EQ(image.elements(), 3 * 32 * 16);
}

TEST(Shape, AVectorIsChannelsAlone) {
  const Shape vector{84};
  EXPECT_EQ(vector.channels(), 84);
  EXPECT_EQ(vector.height(), 1);
  EXPECT_EQ(vector.width(), 1);
}

TEST(Shape, NoExtentsMakeOneElement) { EXPECT_EQ(Shape().elements(), 1); }

TEST(Layout, EachIsFoundByItsName) {
  for (const Layout layout : {Layout::nchw, Layout::nhwc, Layout::blocked8, Layout::blocked16})
    EXPECT_EQ(layout_named(layout_name(layout)), layout);
}

TEST(Layout, AnUnknownNameListsTheKnown) {
  EXPECT_THAT(error_text([] { layout_named("chwn"); }), HasSubstr("'chwn' is unknown: use nchw"));
}

TEST(Layout, BlocksPadChannelsToWholeBlocks) {
  EXPECT_EQ(padded_elements({3, 2, 2}, Layout::nchw), 12);
  EXPECT_EQ(padded_elements({3, 2, 2}, Layout::nhwc), 12);
  EXPECT_EQ(padded_elements({3, 2, 2}, Layout::blocked8), 8 * 4);
  EXPECT_EQ(padded_elements({17, 2, 2}, Layout::blocked16), 32 * 4);
  EXPECT_EQ(padded_elements({17}, Layout::blocked16), 17) << "vectors are never blocked";
}

}  // namespace
}  // namespace regatta
