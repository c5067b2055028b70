// Standard output: kept free for a result on demand, and checked at the end of the program.
#pragma once

namespace regatta {

// Puts something that can be neither read nor written in place of each standard descriptor (0, 1,
// 2) that the program was started without. Otherwise the next file to be opened would get its
// number, and what is printed would end up in that file.
void occupy_closed_descriptors();

// From here on what the program prints goes to standard error, so that standard output has nothing
// but the files that are written to it (write_file with "-" or /dev/stdout).
void reserve_standard_output();
void release_standard_output();

// The descriptor of standard output, wherever printing goes at the moment.
int standard_output();

// Throws InputError if something that was printed did not arrive: a full disk, a closed descriptor.
void require_printed();

}  // namespace regatta
