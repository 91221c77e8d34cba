//! Whether there is an MPI to build with and to start ranks by, and what two hosts on one machine take.

use std::path::Path;

use anyhow::{Result, bail};

use crate::packages::{self, Manager};
use crate::shell::{command, succeeds};
use crate::stages::Install;

#[rustfmt::skip]
const MANAGERS: [Manager; 5] = [
    Manager {
        program: "apt-get",
        before: Some("apt-get update"),
        install: "apt-get install -y --no-install-recommends libopenmpi-dev openmpi-bin libclang-dev pkg-config",
    },
    Manager { program: "dnf", before: None, install: "dnf install -y openmpi-devel clang-devel" },
    Manager { program: "pacman", before: None, install: "pacman -Sy --noconfirm --needed openmpi clang" },
    Manager { program: "zypper", before: None, install: "zypper --non-interactive install openmpi4-devel clang-devel" },
    Manager { program: "brew", before: None, install: "brew install open-mpi llvm" },
];

/// Makes sure that the feature `mpi` builds and its tests run.
pub(crate) fn ensure(install: Install) -> Result<()> {
    let Some(missing) = missing() else {
        eprintln!("mpirun, mpicc and libclang found");
        return Ok(());
    };
    let ran = packages::install(&missing, "Open MPI, and libclang to read its header", &MANAGERS, install)?;
    if let Some(missing) = self::missing() {
        bail!("`{ran}` ran, and still {missing}");
    }
    Ok(())
}

/// What makes two hosts of one machine, to test with.
#[rustfmt::skip]
const NETWORK_MANAGERS: [Manager; 4] = [
    Manager { program: "apt-get", before: Some("apt-get update"), install: "apt-get install -y --no-install-recommends iproute2" },
    Manager { program: "dnf", before: None, install: "dnf install -y iproute" },
    Manager { program: "pacman", before: None, install: "pacman -Sy --noconfirm --needed iproute2" },
    Manager { program: "zypper", before: None, install: "zypper --non-interactive install iproute2" },
];

/// Makes sure that tests can lay a network between two hosts on a Linux machine; elsewhere there are no such tests.
pub(crate) fn ensure_network(install: Install) -> Result<()> {
    if cfg!(target_os = "linux") && !succeeds(&mut command("ip -Version")) {
        packages::install("no ip", "iproute2", &NETWORK_MANAGERS, install)?;
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

/// Where the reader of C headers looks as well.
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
