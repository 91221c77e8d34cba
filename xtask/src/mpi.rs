//! Finds, or installs, an MPI to build with and to start ranks with, and the tools that tests make two hosts with.

use std::path::Path;

use anyhow::{Result, bail};

use crate::packages::{self, Install, Packages};
use crate::shell::{command, succeeds};

const PACKAGES: Packages = Packages {
    provides: "Open MPI, and libclang to read its header",
    names: &[
        ("apt-get", "libopenmpi-dev openmpi-bin libclang-dev pkg-config"),
        ("dnf", "openmpi-devel clang-devel"),
        ("pacman", "openmpi clang"),
        ("zypper", "openmpi4-devel clang-devel"),
        ("brew", "open-mpi llvm"),
    ],
};

/// Connects two hosts that are namespaces of one machine, for tests.
const NETWORK_PACKAGES: Packages = Packages {
    provides: "iproute2",
    names: &[("apt-get", "iproute2"), ("dnf", "iproute"), ("pacman", "iproute2"), ("zypper", "iproute2"), ("apk", "iproute2")],
};

/// Makes sure that the feature `mpi` can be built and its tests run.
pub(crate) fn ensure(install: Install) -> Result<()> {
    let Some(missing) = missing() else {
        eprintln!("mpirun, mpicc and libclang found");
        return Ok(());
    };
    let ran = packages::install(&missing, &PACKAGES, install)?;
    if let Some(missing) = self::missing() {
        bail!("{missing}, even after `{ran}`");
    }
    Ok(())
}

/// Makes sure that tests can connect two hosts on one Linux machine; other systems have no such tests.
pub(crate) fn ensure_network(install: Install) -> Result<()> {
    if cfg!(target_os = "linux") && !succeeds(&mut command("ip -Version")) {
        packages::install("no `ip`", &NETWORK_PACKAGES, install)?;
    }
    Ok(())
}

fn missing() -> Option<String> {
    let mut parts = Vec::new();
    parts.extend((!succeeds(&mut command("mpirun --version"))).then_some("mpirun"));
    parts.extend((!succeeds(&mut command("mpicc --version"))).then_some("mpicc"));
    parts.extend((!has_libclang()).then_some("libclang"));
    (!parts.is_empty()).then(|| format!("no {}", parts.join(", no ")))
}

/// Whether libclang is in one of the folders that bindgen searches.
fn has_libclang() -> bool {
    if cfg!(not(target_os = "linux")) || std::env::var_os("LIBCLANG_PATH").is_some() {
        return true;
    }
    let is_it = |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libclang"));
    let has_it = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| is_it(&entry.path()));
    let fixed = ["/usr/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/local/lib"];
    let versions = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let of_llvm = versions.filter(|path| path.to_string_lossy().contains("llvm")).map(|path| path.join("lib"));
    fixed.iter().map(|folder| Path::new(folder).to_owned()).chain(of_llvm).any(|folder| has_it(&folder))
}
