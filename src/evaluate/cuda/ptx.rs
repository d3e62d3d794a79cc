//! What the host must know of PTX: which driver it asks for, and what each entry takes.

/// An entry point, as its PTX declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// The sizes of its parameters in bytes.
    pub(super) sizes: Vec<usize>,
}

/// The version of the first driver that understands PTX with this header: 12080 for 12.8. `None` if it has none.
///
/// The PTX version is one more with nearly every release of CUDA: 7.0 came with 11.0, 8.0 with 12.0 and 9.0 with 13.0,
/// but 12.6 came without a new one.
pub(super) fn driver_version(ptx: &str) -> Option<i32> {
    let version = ptx.lines().find_map(|line| line.strip_prefix(".version "))?;
    let (major, minor) = version.trim().split_once('.')?;
    let (major, minor): (i32, i32) = (major.parse().ok()?, minor.parse().ok()?);
    let release = if major == 8 && minor >= 6 { minor + 1 } else { minor };
    Some((major + 4) * 1000 + release * 10)
}

/// The entry points. What cannot be read is left out, and then not found by its name.
pub(super) fn entries(ptx: &str) -> Vec<Entry<'_>> {
    ptx.split(".entry ").skip(1).filter_map(entry).collect()
}

fn entry(text: &str) -> Option<Entry<'_>> {
    let (name, rest) = text.split_once('(')?;
    let (parameters, _) = rest.split_once(')')?;
    let sizes = parameters.split(".param").skip(1).map(size).collect::<Option<_>>()?;
    Some(Entry { name: name.trim(), sizes })
}

/// Of `.u64 name`: parameters are pointers and words, no structures.
fn size(parameter: &str) -> Option<usize> {
    let kind = parameter.split_whitespace().next()?;
    let bits: usize = kind.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok()?;
    Some(bits / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_ptx_are_those_of_the_releases() {
        let of = |version| driver_version(&format!("// text\n.version {version}\n.target sm_75\n"));
        let known = [("7.8", 11080), ("8.0", 12000), ("8.5", 12050), ("8.6", 12070), ("8.8", 12090), ("9.0", 13000)];
        for (ptx, driver) in known {
            assert_eq!(of(ptx), Some(driver), "{ptx}");
        }
        assert_eq!(driver_version(""), None);
    }

    #[test]
    fn an_entry_says_what_it_takes() {
        let ptx = ".visible .entry score(\n\t.param .u64 score_param_0,\n\t.param .u64 .ptr .global .align 8 p1,\n\
                   \t.param .u32 score_param_2\n)\n.maxntid 256, 1, 1\n.minnctapersm 4\n{\n\tret;\n}\n";
        assert_eq!(entries(ptx), [Entry { name: "score", sizes: vec![8, 8, 4] }]);
        // An array is no pointer and no word.
        assert_eq!(entries(&ptx.replace(".u32 score_param_2", ".align 4 .b8 score_param_2[12]")), []);
    }
}
