//! The one list of kernels. A line here is a serial twin `twin/<kernel>.rs` with a function of that name, a CUDA source
//! `kernels/<kernel>.cu` and a WGSL source `shaders/<kernel>.wgsl` with entry points that begin with that name; a listed
//! kernel without it does not compile, and a file that is not listed fails a test.

macro_rules! kernels {
    ($($(#[doc = $doc:literal])* $name:ident;)*) => {
        /// A kernel.
        #[allow(non_camel_case_types, reason = "a variant is the name of its files and functions")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kernel {
            $($(#[doc = $doc])* $name,)*
        }

        impl Kernel {
            /// All of them.
            pub const ALL: &[Kernel] = &[$(Kernel::$name),*];

            /// The name of its files and functions.
            pub const fn name(self) -> &'static str {
                match self { $(Kernel::$name => stringify!($name)),* }
            }

            /// Its WGSL source, which `shaders/abi.wgsl` goes before.
            pub const fn wgsl(self) -> &'static str {
                match self { $(Kernel::$name => include_str!(concat!("../../shaders/", stringify!($name), ".wgsl"))),* }
            }

            /// Its CUDA source, which includes `kernels/abi.cuh`.
            pub const fn cuda(self) -> &'static str {
                match self { $(Kernel::$name => include_str!(concat!("../../kernels/", stringify!($name), ".cu"))),* }
            }

            /// What `kernels/build-ptx` makes of its CUDA source.
            pub const fn ptx(self) -> &'static str {
                match self { $(Kernel::$name => include_str!(concat!("../../kernels/ptx/", stringify!($name), ".ptx"))),* }
            }
        }

        /// Names every twin, so that a missing one does not compile.
        const _: fn() = || {
            $(let _ = super::twin::$name::$name;)*
        };
    };
}

kernels! {
    /// Scores every candidate of a batch.
    score_candidates;
    /// The best candidate of every job.
    best_candidate;
    /// The best nodes for each class of demand.
    rank_nodes;
    /// FGD's score of every node for each class of demand.
    score_fgd;
    /// Replaces the rows of edited nodes.
    apply_edits;
    /// Counts the nodes.
    census;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_on_the_list() {
        for (folder, ending, besides) in [
            ("src/evaluate/twin", ".rs", "mod"),
            ("kernels", ".cu", ""),
            ("kernels/ptx", ".ptx", ""),
            ("shaders", ".wgsl", "abi"),
        ] {
            let mut files: Vec<String> = std::fs::read_dir(format!("{}/{folder}", env!("CARGO_MANIFEST_DIR")))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter_map(|name| name.strip_suffix(ending).map(str::to_owned))
                .filter(|name| name != besides)
                .collect();
            files.sort_unstable();
            let mut listed: Vec<&str> = Kernel::ALL.iter().map(|kernel| kernel.name()).collect();
            listed.sort_unstable();
            assert_eq!(files, listed, "{folder}");
        }
    }
}
