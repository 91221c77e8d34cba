//! Every kernel has a twin in plain Rust, and a test.

use super::Finding;
use super::workspace::Workspace;

const KERNELS: &str = "crates/kernels/src/";
const TESTS: &str = "crates/kernels/tests/it/";

/// A kernel is `family/adam.rs`, its twin `family/adam_cpu.rs`, its shaders `family/adam.wgsl` and `family/adam_*.wgsl`: a shader
/// belongs to the kernel of its family with the longest name that it starts with. A shader that belongs to no kernel is a part
/// that several kernels share, and one of them must include it.
pub(super) fn have_twins(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut owners = Vec::new();
    for file in &workspace.files {
        let Some(shader) = file.path.strip_suffix(".wgsl").filter(|path| path.starts_with(KERNELS)) else { continue };
        let named = |kernel: &&str| shader.strip_prefix(kernel).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'));
        let kernels = workspace.rust_files(KERNELS).filter_map(|file| file.path.strip_suffix(".rs"));
        match kernels.filter(|kernel| !kernel.ends_with("_cpu")).filter(named).max_by_key(|kernel| kernel.len()) {
            Some(owner) => owners.push(owner),
            None if is_included(workspace, &file.path) => {}
            None => findings.push(Finding::new(&file.path, 0, "belongs to no kernel by its name, and none includes it")),
        }
    }
    owners.sort_unstable();
    owners.dedup();
    for kernel in owners {
        let path = format!("{kernel}.rs");
        let twin = format!("{kernel}_cpu.rs");
        if workspace.file(&twin).is_none() {
            findings.push(Finding::new(&path, 0, format!("has a shader but no twin in plain Rust at {twin}")));
        }
        let name = kernel.rsplit('/').next().unwrap_or(kernel);
        if !workspace.rust_files(TESTS).any(|file| file.path.contains(name) || file.text.contains(name)) {
            findings.push(Finding::new(&path, 0, format!("has no test: nothing in {TESTS} names it")));
        }
    }
    findings
}

/// Whether `file` is a body of the kernel in `kernel`, by its name: its twin, or its dispatches if they are apart.
pub(super) fn is_body(workspace: &Workspace, file: &str, kernel: &str) -> bool {
    const BODIES: [&str; 3] = ["_cpu.rs", "_gpu.rs", "_module.rs"];
    let Some(body) = BODIES.iter().find_map(|end| file.strip_suffix(end)).filter(|_| file.starts_with(KERNELS)) else {
        return false;
    };
    // Of names such as `matmul_batch_cpu.rs`, the longest beginning that is a file.
    let mut beginnings = std::iter::successors(Some(body), |name| name.rsplit_once('_').map(|(before, _)| before));
    let own = beginnings.find(|name| workspace.file(&format!("{name}.rs")).is_some());
    own.is_some_and(|own| kernel.strip_suffix(".rs") == Some(own))
}

/// Whether a Rust file includes `shader`, by its name from its own folder or by `family/name` from another.
fn is_included(workspace: &Workspace, shader: &str) -> bool {
    let (folder, name) = shader.rsplit_once('/').unwrap_or(("", shader));
    let family = folder.rsplit('/').next().unwrap_or(folder);
    let from_own_folder = format!("\"{name}\"");
    let from_another = format!("/{family}/{name}\"");
    workspace.rust_files(KERNELS).any(|file| {
        let is_own = file.path.rsplit_once('/').is_some_and(|(of, _)| of == folder);
        (is_own && file.text.contains(&from_own_folder)) || file.text.contains(&from_another)
    })
}
