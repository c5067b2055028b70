#include "tickets/shared_energy.h"

#include <algorithm>

namespace regatta::tickets {

SharedEnergy::Share::Share(SharedEnergy& all, int cpus) : all_(all), cpus_(cpus) {
  all_.divide();
  all_.running_.push_back(this);
}

SharedEnergy::Share::~Share() {
  all_.divide();
  std::erase(all_.running_, this);
}

Energy SharedEnergy::Share::read() {
  all_.divide();
  return energy_;
}

void SharedEnergy::divide() {
  const auto jobs = static_cast<double>(running_.size());
  for (const Energy& counted : meter_()) {
    const bool for_one_cpu = !counted.measured && counted.name == "cpu";
    for (Share* job : running_) {
      job->energy_.joules += counted.joules * (for_one_cpu ? job->cpus_ : 1 / jobs);
      job->energy_.measured &= counted.measured;
    }
  }
}

}  // namespace regatta::tickets
