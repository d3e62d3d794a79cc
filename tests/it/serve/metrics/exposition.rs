//! A strict reader of the text format of Prometheus, version 0.0.4, as far as it is used here.

use std::collections::{BTreeMap, BTreeSet};

/// The labels of a sample.
pub(super) type Labels = BTreeMap<String, String>;

/// A family: its kind, and its samples by their name and labels.
#[derive(Debug, Default)]
pub(super) struct Family {
    pub(super) kind: String,
    pub(super) samples: Vec<(String, Labels, f64)>,
}

/// All families by name. Panics at the first line that is not as it should be.
pub(super) fn read(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut helped = String::new();
    let mut current = String::new();
    let mut seen = BTreeSet::new();
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            assert!(help.ends_with('.') && help.len() > 10, "{line}");
            helped = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            assert_eq!(name, helped, "HELP comes first: {line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            let family = Family { kind: kind.to_owned(), samples: Vec::new() };
            assert!(families.insert(name.to_owned(), family).is_none(), "twice: {line}");
            current = name.to_owned();
        } else {
            let (name, labels, value) = sample(line);
            assert!(seen.insert((name.clone(), labels.clone())), "twice: {line}");
            let family = families.get_mut(&current).unwrap_or_else(|| panic!("of no family: {line}"));
            let suffix = name.strip_prefix(&current).unwrap_or_else(|| panic!("of another family: {line}"));
            let suffixes: &[&str] = if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(suffixes.contains(&suffix), "{line}");
            family.samples.push((name, labels, value));
        }
    }
    families
}

/// A sample of a line: `name{label="value",…} number`.
fn sample(line: &str) -> (String, Labels, f64) {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("{line}"));
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name), "{line}");
    let mut labels = Labels::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{line}"));
            assert!(is_name(label), "{line}");
            let mut value = String::new();
            let mut characters = after.char_indices();
            let end = loop {
                match characters.next().unwrap_or_else(|| panic!("{line}")) {
                    (at, '"') => break at,
                    (_, '\\') => match characters.next().unwrap_or_else(|| panic!("{line}")).1 {
                        'n' => value.push('\n'),
                        c @ ('\\' | '"') => value.push(c),
                        other => panic!("\\{other}: {line}"),
                    },
                    (_, c) => value.push(c),
                }
            };
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
            rest = &after[end + 1..];
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => break,
            }
        }
        rest = rest.strip_prefix('}').unwrap_or_else(|| panic!("{line}"));
    }
    let value = rest.strip_prefix(' ').unwrap_or_else(|| panic!("{line}"));
    (name.to_owned(), labels, value.parse().unwrap_or_else(|_| panic!("{line}")))
}

#[test]
fn the_reader_refuses_what_is_none() {
    let good = "# HELP a_total What it is.\n# TYPE a_total counter\na_total{b=\"c\\\"\\\\\\n,}\"} 1\n";
    let read_good = read(good);
    assert_eq!(read_good["a_total"].samples[0].1["b"], "c\"\\\n,}");
    for bad in [
        good.replace("# HELP a_total What it is.\n", ""),
        good.replace("counter", "number"),
        good.replace("} 1", "} one"),
        good.replace("a_total{", "b_total{"),
        format!("{good}a_total{{b=\"c\\\"\\\\\\n,}}\"}} 2\n"),
    ] {
        assert!(std::panic::catch_unwind(|| read(&bad)).is_err(), "{bad}");
    }
}
