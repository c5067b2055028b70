// Labels by class name: data whose classes are other, fewer or in another order than those a
// network was trained on.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace regatta {

// The data with its labels replaced by indices into `classes`, matched by name; unchanged if one of
// them has no names. Throws InputError that lists the data's names that `classes` lacks.
std::shared_ptr<const Dataset> labelled_as(std::shared_ptr<const Dataset> data,
                                           const std::vector<std::string>& classes);

}  // namespace regatta
