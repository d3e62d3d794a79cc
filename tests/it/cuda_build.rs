//! Builds the CUDA kernels for the processor, with g++: see tests/cuda/README.md.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use slotwise::evaluate::Kernel;

/// A planted fault: in the source of a kernel, the `nth` occurrence (from 0) of one text becomes another.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Fault {
    pub(crate) kernel: Kernel,
    pub(crate) nth: usize,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

/// Position-independent objects of all kernels and of what runs them. Link all of them: the kernels make themselves
/// known at start-up.
pub(crate) fn objects(fault: Option<Fault>) -> Vec<PathBuf> {
    let kernels = Kernel::ALL.iter().map(|&kernel| compile(kernel.name(), &host_source(kernel, fault)));
    kernels.chain([compile("shim", &read("tests/cuda/shim.cpp"))]).collect()
}

/// The program that runs kernels as a script says: see tests/cuda/runner.cpp.
pub(crate) fn runner(fault: Option<Fault>) -> PathBuf {
    let mut objects = objects(fault);
    objects.push(compile("runner", &read("tests/cuda/runner.cpp")));
    link("runner", &objects, &[])
}

/// The folder of a `libcuda.so` that is a test double of the driver: see tests/cuda/standin.hpp.
pub(crate) fn stand_in() -> PathBuf {
    // The program looks for the library, closes it and opens it again; it keeps what it knows.
    library("stand-in", &stand_in_objects(), &["-Wl,-z,nodelete", "-pthread"])
}

/// A program that uses the double wrongly: see tests/cuda/standin_misuse.cpp.
pub(crate) fn misuse() -> PathBuf {
    let mut objects = stand_in_objects();
    objects.push(compile("standin_misuse", &read("tests/cuda/standin_misuse.cpp")));
    link("misuse", &objects, &["-pthread"])
}

fn stand_in_objects() -> Vec<PathBuf> {
    let parts = ["standin", "standin_queue", "standin_memory", "standin_kernel", "standin_api"];
    let parts = parts.map(|part| compile(part, &read(&format!("tests/cuda/{part}.cpp"))));
    objects(None).into_iter().chain(parts).collect()
}

/// The folder of a `libcuda.so` without any function.
pub(crate) fn empty_library() -> PathBuf {
    library("empty", &[compile("nothing", "")], &[])
}

/// A folder with these objects as `libcuda.so`.
fn library(name: &str, objects: &[PathBuf], more: &[&str]) -> PathBuf {
    let library = link(&format!("{name}.so"), objects, &[&["-shared"], more].concat());
    let folder = library.with_extension("found");
    let link = folder.join("libcuda.so");
    if !link.exists() {
        std::fs::create_dir_all(&folder).unwrap();
        // Another test may have made it in the meantime.
        let _ = std::os::unix::fs::symlink(&library, &link);
    }
    folder
}

/// Compiles C++ text that may include what lies in tests/cuda and kernels, unless that has been done before.
pub(crate) fn compile(name: &str, text: &str) -> PathBuf {
    let headers = ["tests/cuda/shim.h", "tests/cuda/standin.hpp", "kernels/abi.cuh"].map(read);
    built(&format!("{name}.o"), &(text, headers), |out| {
        let source = out.with_extension("cpp");
        std::fs::write(&source, text).unwrap();
        let mut command = Command::new("g++");
        command.args(["-std=c++17", "-O2", "-fPIC", "-Wall", "-Wno-unknown-pragmas", "-fno-strict-aliasing"]);
        command.args(["-fsanitize=undefined", "-fno-sanitize-recover=all"]);
        command.arg("-I").arg(root().join("tests/cuda")).arg("-I").arg(root().join("kernels"));
        command.arg("-c").arg(&source).arg("-o").arg(out);
        command
    })
}

/// Links objects, with more arguments for the linker if any.
pub(crate) fn link(name: &str, objects: &[PathBuf], more: &[&str]) -> PathBuf {
    built(name, &(objects, more), |out| {
        let mut command = Command::new("g++");
        command.args(objects).args(more).arg("-fsanitize=undefined").arg("-o").arg(out);
        command
    })
}

/// A kernel's source as C++ that notes its entry points.
fn host_source(kernel: Kernel, fault: Option<Fault>) -> String {
    let mut source = kernel.cuda().to_owned();
    if let Some(fault) = fault.filter(|fault| fault.kernel == kernel) {
        let at = source.match_indices(fault.from).nth(fault.nth);
        let (at, _) = at.unwrap_or_else(|| panic!("{}.cu has not so many `{}`", kernel.name(), fault.from));
        source.replace_range(at..at + fault.from.len(), fault.to);
    }
    let entries: String = entry_points(&source).iter().map(|entry| format!("SHIM_KERNEL({entry})\n")).collect();
    format!("#include \"shim.h\"\n#line 1 \"{}.cu\"\n{source}\n{entries}", kernel.name())
}

/// The entry points of a CUDA source.
pub(crate) fn entry_points(source: &str) -> Vec<&str> {
    let definitions = source.split("extern \"C\" __global__ void ").skip(1);
    let names = definitions.map(|rest| match rest.strip_prefix("__launch_bounds__") {
        Some(bounds) => bounds.split_once(") ").unwrap().1,
        None => rest,
    });
    names.map(|rest| rest.split_once('(').unwrap().0).collect()
}

/// A file that a command makes, by the hash of all that it is made of. Built elsewhere and moved, so that tests and test
/// programs that run at the same time do not see it half done.
fn built(name: &str, made_of: &impl Hash, command: impl FnOnce(&Path) -> Command) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (made_of, include_str!("cuda_build.rs")).hash(&mut hasher);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda");
    let done = folder.join(format!("{:016x}-{name}", hasher.finish()));
    if !done.exists() {
        std::fs::create_dir_all(&folder).unwrap();
        let scratch = tempfile::tempdir_in(&folder).unwrap();
        let fresh = scratch.path().join(name);
        let output = command(&fresh).output().expect("these tests need g++");
        assert!(output.status.success(), "{name}:\n{}", String::from_utf8_lossy(&output.stderr));
        std::fs::rename(&fresh, &done).unwrap();
    }
    done
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}
