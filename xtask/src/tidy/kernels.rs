//! Every kernel has a twin in plain Rust, and a test.

use super::Finding;
use super::workspace::Workspace;

const SHADERS: &str = "crates/kernels/src/wgsl/";
const KERNELS: &str = "crates/kernels/src/";
const TWINS: &str = "crates/kernels/src/cpu/";
const TESTS: &str = "crates/kernels/tests/it/";

/// A shader belongs to the kernel with the longest name that it starts with: `matmul_direct.wgsl` to `matmul.rs`. One that
/// belongs to none is a part that several share, and must be included by one of them.
pub(super) fn have_twins(workspace: &Workspace) -> Vec<Finding> {
    let stem = |path: &str, folder: &str, end: &str| {
        path.strip_prefix(folder)?.strip_suffix(end).filter(|stem| !stem.contains('/')).map(str::to_owned)
    };
    let kernels: Vec<String> = workspace.files.iter().filter_map(|file| stem(&file.path, KERNELS, ".rs")).collect();
    let mut findings = Vec::new();
    let mut owners = Vec::new();
    for (path, shader) in workspace.files.iter().filter_map(|file| Some((&file.path, stem(&file.path, SHADERS, ".wgsl")?))) {
        let belongs = |kernel: &&String| {
            shader == **kernel || shader.strip_prefix(kernel.as_str()).is_some_and(|rest| rest.starts_with('_'))
        };
        match kernels.iter().filter(belongs).max_by_key(|kernel| kernel.len()) {
            Some(owner) => owners.push(owner.clone()),
            None if workspace.rust_files(KERNELS).any(|file| file.text.contains(&format!("{shader}.wgsl"))) => {}
            None => findings.push(Finding::new(path, 0, "no kernel is named like it, and none includes it")),
        }
    }
    owners.sort();
    owners.dedup();
    for kernel in owners {
        let path = format!("{KERNELS}{kernel}.rs");
        let twin = format!("{TWINS}{kernel}.rs");
        if workspace.file(&twin).is_none() {
            findings.push(Finding::new(&path, 0, format!("has a shader and no twin in plain Rust at {twin}")));
        }
        if !workspace.rust_files(TESTS).any(|file| file.path.contains(&kernel) || file.text.contains(&kernel)) {
            findings.push(Finding::new(&path, 0, format!("is named nowhere in {TESTS}")));
        }
    }
    findings
}
