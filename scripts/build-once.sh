#!/usr/bin/env bash
# Sourced by scripts/starpu and scripts/onednn, which build a library once, into a cache that all
# clones share, from the source package of a later Debian suite.
#
# The script that sources it sets `library`, the name in messages and in the cache, and defines
#   build WORK KEY    makes the prefix $cache/$library-VERSION-KEY, using the empty folder WORK,
#                     and prints it
#
# REGATTA_CACHE moves the cache (default: $XDG_CACHE_HOME/regatta or ~/.cache/regatta).
export LC_ALL=C

cache=${REGATTA_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/regatta}
cache=${cache%/}
log=$cache/${library:?}-build.log

say() { echo "$library: $*" >&2; }
fail() {
  say "$*"
  exit 2
}

# What changes the result of every build: the named functions, which make it, the compiler and the C
# library. The caller adds what else matters, and hashes all.
build_facts() { # FUNCTION...
  declare -f "$@"
  uname -m
  { ${CC:-cc} -dumpfullversion && getconf GNU_LIBC_VERSION; } 2>/dev/null || true
}
key_of() { sha256sum | cut -c1-12; }

built_prefix() { # KEY
  local prefix
  for prefix in "$cache/$library"-*-"$1"; do
    [[ -d $prefix/lib ]] && echo "$prefix" && return 0
  done
  return 1
}

find_or_build() { # find|build KEY; prints the prefix, or returns 1 when there is none to be found
  local work
  if built_prefix "$2"; then return 0; fi
  [[ $1 == build ]] || return 1
  mkdir -p "$cache"
  exec 9>"$cache/$library.lock"
  if ! flock -n 9; then
    say "another set-up is building it; waiting for that"
    flock 9
  fi
  if built_prefix "$2"; then return 0; fi
  # The lock is held, so whatever lies here was left by a killed build.
  rm -rf "$cache/$library-building".*
  work=$(mktemp -d "$cache/$library-building.XXXXXX")
  # shellcheck disable=SC2064  # the folder's name is fixed now
  trap "rm -rf '$work'" EXIT
  # Called from our own Makefile, whose variables are not those of the library's build.
  unset MAKEFLAGS MAKELEVEL MFLAGS MAKEOVERRIDES
  build "$work" "$2"
}

# Runs a command with its output in the log; shows the end of the log if it fails.
logged() {
  if ! "$@" >"$log" 2>&1; then
    tail -n 25 "$log" >&2
    fail "the build failed; the whole log is $log"
  fi
}

# Moves what was installed below WORK/stage to its prefix, whole or not at all.
keep() { # WORK PREFIX
  find "$1/stage$2/lib" -name '*.so*' -type f -exec strip --strip-unneeded {} +
  mv -T "$1/stage$2" "$2"
}

# --- source packages of Debian -------------------------------------------------------------------

# The mirror is the one this machine already uses.
mirrors() {
  command -v apt-get >/dev/null || return 0
  # shellcheck disable=SC2016  # $(REPO_URI) is apt's own format language
  {
    apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' 'Created-By: Packages'
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages'
  } 2>/dev/null | awk '!seen[$0]++'
}

# Fetches PACKAGE, of a version that begins with SERIES, from the first of SUITEs that has it.
# Leaves WORK/source and prints the version. A private apt configuration leaves the machine's own
# untouched.
fetch_from_debian() { # WORK PACKAGE SERIES SUITE...
  local work=$1 package=$2 series=$3 mirror suite keyring=/usr/share/keyrings/debian-archive-keyring.gpg signed=""
  shift 3
  command -v dpkg-source >/dev/null || return 1
  [[ -r $keyring ]] && signed="[signed-by=$keyring]"
  for mirror in $(mirrors); do
    for suite in "$@"; do
      rm -rf "$work/apt" "$work/fetched"
      mkdir -p "$work/apt/parts" "$work/apt/lists/partial" "$work/apt/cache/archives/partial" "$work/fetched"
      echo "deb-src $signed $mirror $suite main" >"$work/apt/parts/later.list"
      local apt=(-qq -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/apt/parts"
        -o "Dir::State::lists=$work/apt/lists" -o "Dir::Cache=$work/apt/cache"
        -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=2)
      say "asking Debian $suite for the source package $package"
      apt-get "${apt[@]}" update >&2 || continue
      # A suite's index can name files its mirror no longer has: only a real download counts.
      (cd "$work/fetched" && apt-get "${apt[@]}" source --download-only "$package" >&2) || continue
      local dsc version
      dsc=$(echo "$work/fetched/${package}_$series"*.dsc)
      [[ -f $dsc ]] || continue
      version=${dsc##*/"$package"_}
      version=${version%%[+~-]*}
      dpkg-source --no-check -x "$dsc" "$work/source" >/dev/null 2>&1 || continue
      echo "${version%.dsc}"
      return 0
    done
  done
  return 1
}
