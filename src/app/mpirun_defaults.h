// Open MPI's settings for runs over ranks.
#pragma once

namespace regatta::app {

// What mpirun should do unless the user says otherwise, as environment of the programs that this
// one starts: see docs/ranks.md.
void set_mpirun_defaults();

}  // namespace regatta::app
