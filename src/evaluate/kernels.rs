//! The one list of kernels. A line here is a serial twin `twin/<kernel>.rs` with a function of that name; a listed
//! kernel without it does not compile, and a twin that is not listed fails a test. The texts of device kernels join
//! the macro with the first device backend.

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
    /// Replaces the rows of edited nodes.
    apply_edits;
    /// Counts the nodes.
    census;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_twin_is_on_the_list() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/evaluate/twin");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "mod.rs")
            .collect();
        files.sort_unstable();
        let mut listed: Vec<String> = Kernel::ALL.iter().map(|kernel| format!("{}.rs", kernel.name())).collect();
        listed.sort_unstable();
        assert_eq!(files, listed);
    }
}
