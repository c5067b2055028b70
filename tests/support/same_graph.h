// Whether two graphs are one: for networks that went through a file.
#pragma once

#include <gtest/gtest.h>

#include "graph/graph.h"
#include "graph/op.h"

namespace regatta {

inline void expect_same_graph(const Graph& found, const Graph& wanted) {
  EXPECT_EQ(found.name(), wanted.name());
  ASSERT_EQ(found.nodes().size(), wanted.nodes().size()) << wanted.name();
  for (std::size_t i = 0; i < wanted.nodes().size(); ++i) {
    const Node &ours = found.nodes()[i], &theirs = wanted.nodes()[i];
    EXPECT_EQ(ours.op, theirs.op) << theirs.name;
    EXPECT_EQ(ours.name, theirs.name);
    EXPECT_EQ(ours.inputs, theirs.inputs) << theirs.name;
    EXPECT_EQ(ours.attributes, theirs.attributes) << theirs.name;
    EXPECT_EQ(ours.shape, theirs.shape) << theirs.name;
  }
  ASSERT_EQ(found.parameters().size(), wanted.parameters().size());
  for (std::size_t i = 0; i < wanted.parameters().size(); ++i) {
    EXPECT_EQ(found.parameters()[i].name, wanted.parameters()[i].name);
    EXPECT_EQ(found.parameters()[i].shape, wanted.parameters()[i].shape);
    EXPECT_EQ(found.parameters()[i].init, wanted.parameters()[i].init);
  }
}

}  // namespace regatta
