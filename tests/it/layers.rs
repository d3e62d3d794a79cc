//! Which module may name which. The table is the architecture; these tests keep it true.

use std::path::{Path, PathBuf};

/// A module of `src/` and the other modules that it may name.
const MAY_NAME: &[(&str, &[&str])] = &[
    ("cluster", &[]),
    ("workload", &["cluster"]),
    ("fragmentation", &["cluster", "workload"]),
    ("anchor", &["cluster", "workload", "fragmentation"]),
    ("evaluate", &["cluster", "workload", "fragmentation", "anchor"]),
    ("decide", &["cluster", "workload", "fragmentation", "anchor", "evaluate"]),
    ("formats", &["cluster", "workload"]),
    ("plan", &["cluster", "workload", "fragmentation", "anchor", "evaluate", "decide"]),
    ("simulate", &["cluster", "workload", "fragmentation", "anchor", "evaluate", "decide", "plan", "formats"]),
    (
        "report",
        &["cluster", "workload", "fragmentation", "anchor", "evaluate", "decide", "formats", "simulate", "plan"],
    ),
    (
        "serve",
        &[
            "cluster",
            "workload",
            "fragmentation",
            "anchor",
            "evaluate",
            "decide",
            "formats",
            "simulate",
            "plan",
            "report",
        ],
    ),
    (
        "cli",
        &[
            "cluster",
            "workload",
            "fragmentation",
            "anchor",
            "evaluate",
            "decide",
            "formats",
            "simulate",
            "plan",
            "report",
            "serve",
        ],
    ),
];

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Every `crate::module` and `slotwise::module` of a line of code, comments left out.
fn named_modules(line: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or_default();
    let after = |root: &str| code.split(root).skip(1).map(str::to_owned).collect::<Vec<_>>();
    let names = after("crate::").into_iter().chain(after("slotwise::"));
    names.map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()).collect()
}

#[test]
fn a_module_names_only_what_lies_before_it() {
    let mut faults = Vec::new();
    let mut seen = Vec::new();
    for path in rust_files(&source()) {
        let relative = path.strip_prefix(source()).unwrap().to_owned();
        let module = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned();
        if module == "lib" || module == "main" {
            continue;
        }
        let allowed = MAY_NAME.iter().find(|(name, _)| *name == module);
        let allowed = allowed.unwrap_or_else(|| panic!("`{module}` is not in the table")).1;
        for (number, line) in std::fs::read_to_string(&path).unwrap().lines().enumerate() {
            for target in named_modules(line) {
                assert!(!target.is_empty(), "{}:{}: one module a line", relative.display(), number + 1);
                if target != module && !allowed.contains(&target.as_str()) {
                    faults.push(format!("{}:{}: `{module}` names `{target}`", relative.display(), number + 1));
                }
            }
        }
        seen.push(module);
    }
    assert_eq!(faults, Vec::<String>::new());
    for (module, _) in MAY_NAME {
        assert!(seen.iter().any(|name| name == module), "`{module}` is in the table and not in src/");
    }
}

#[test]
fn the_table_has_a_direction() {
    for (at, (module, may_name)) in MAY_NAME.iter().enumerate() {
        for target in *may_name {
            let before = MAY_NAME[..at].iter().any(|(name, _)| name == target);
            assert!(before, "`{module}` may name `{target}`, which does not lie before it");
        }
    }
}

#[test]
fn the_fault_finder_finds_faults() {
    assert_eq!(named_modules("use crate::decide::Policy; // crate::cli"), ["decide"]);
    assert_eq!(named_modules("    crate::cluster::slot_width(crate::report::x)"), ["cluster", "report"]);
}

/// The files that may be unsafe, each with a reason at its head.
const UNSAFE: &[&str] =
    &["evaluate/cpu/simd.rs", "evaluate/cuda/driver.rs", "evaluate/cuda/entry.rs", "evaluate/cuda/memory.rs"];

#[test]
fn few_files_are_unsafe_and_only_cli_prints() {
    for path in rust_files(&source()) {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = || text.lines().map(|line| line.split("//").next().unwrap_or_default());
        let relative = path.strip_prefix(source()).unwrap();
        let unsafe_here = code().any(|line| line.contains("unsafe "));
        assert_eq!(unsafe_here, UNSAFE.iter().any(|file| relative == Path::new(file)), "{}", path.display());
        // Each place says why it is sound.
        let places = |what: &str| text.lines().filter(|line| line.contains(what)).count();
        assert!(!unsafe_here || places("unsafe {") == places("// SAFETY:"), "{}", path.display());
        let prints = ["println!(", "eprintln!(", "print!(", "eprint!(", "stdout()", "stderr()"];
        let speaks = code().any(|line| prints.iter().any(|macro_name| line.contains(macro_name)));
        // Tests beside the code may say what they measured.
        let may = relative.starts_with("cli") || relative.iter().any(|part| part == "tests");
        assert!(may || !speaks, "{} prints", path.display());
    }
}
