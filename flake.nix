# Regatta for those who work with Nix:  nix build    nix develop    nix run . -- models
#
# Evaluated, with packages of the same names in place of nixpkgs; not built yet. On CPUs only, without
# the report page.
{
  description = "Trains neural networks on machines that do not match";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-24.11";

  outputs = { self, nixpkgs }:
    let
      system = "x86_64-linux";
      pkgs = nixpkgs.legacyPackages.${system};

      # What scripts/starpu builds on Debian, without CUDA.
      starpu = pkgs.stdenv.mkDerivation rec {
        pname = "starpu";
        version = "1.4.10";
        src = pkgs.fetchurl {
          url = "https://files.inria.fr/starpu/starpu-${version}/starpu-${version}.tar.gz";
          sha256 = "8f35f59c337ba109e5ef5fb4f6331b4845d524921e184fcc89f2ecac60faaf03";
        };
        nativeBuildInputs = [ pkgs.pkg-config ];
        propagatedBuildInputs = [ pkgs.hwloc ];
        configureFlags = [
          "--enable-maxcpus=256" "--disable-cuda" "--disable-opencl" "--disable-hip"
          "--disable-build-doc" "--disable-build-examples" "--disable-build-tests"
          "--disable-starpufft" "--disable-socl" "--disable-starpurm" "--disable-starpupy"
          "--disable-fortran" "--disable-hdf5" "--disable-leveldb" "--disable-papi" "--disable-glpk"
          "--disable-valgrind" "--disable-static" "--disable-mlr" "--disable-mpi" "--disable-fxt"
        ];
        enableParallelBuilding = true;
      };
    in {
      packages.${system} = {
        inherit starpu;
        default = pkgs.stdenv.mkDerivation {
          pname = "regatta";
          version = "0.1.0";
          src = self;
          nativeBuildInputs = with pkgs; [ cmake ninja pkg-config ];
          buildInputs = with pkgs; [
            starpu oneDNN hwloc openssl zlib sqlite libjpeg libpng onnx protobuf simgrid
            nlohmann_json cli11 clp coin-utils gmp openmpi
          ];
          # The report page's npm packages cannot be fetched inside Nix's sandbox.
          cmakeFlags = [ "-DREGATTA_PAGE=OFF" "-DREGATTA_TESTS=OFF" "-DREGATTA_CUDA=OFF" ];
        };
      };

      devShells.${system}.default = pkgs.mkShell {
        inputsFrom = [ self.packages.${system}.default ];
        packages = with pkgs; [ gtest nodejs clang-tools shellcheck ];
      };
    };
}
