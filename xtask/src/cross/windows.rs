//! Windows: cross-compiled with MinGW, run with Wine.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::{example, target};
use crate::packages::{self, Install, Packages};
use crate::shell::{command, root, run as must, succeeds, target_dir};

const TARGET: &str = "x86_64-pc-windows-gnu";
const COMPILER: &str = "x86_64-w64-mingw32-gcc";

/// Debian's package wine64 puts the program into a folder that is not in PATH.
const WINE: [&str; 3] = ["wine64", "wine", "/usr/lib/wine/wine64"];

const PACKAGES: Packages = Packages {
    provides: "MinGW-w64's GCC for x86-64, and Wine",
    names: &[
        ("apt-get", "g++-mingw-w64-x86-64-win32 wine64"),
        ("dnf", "mingw64-gcc wine-core"),
        ("pacman", "mingw-w64-gcc wine"),
    ],
};

pub(super) fn run(install: Install) -> Result<()> {
    let wine = ensure(install)?;
    target::ensure(TARGET, install)?;
    let folder = target_dir().join("cross").join("windows");
    let libraries = system_library(&folder)?;
    let variables = [
        ("WINEPREFIX", folder.join("wine")),
        // Folders to search for libraries, as Windows writes paths: Wine shows `/` as the drive Z.
        ("WINEPATH", format!("Z:{}", libraries.display()).replace('/', "\\").into()),
        // No messages of Wine's own.
        ("WINEDEBUG", "-all".into()),
    ];

    let mut tests =
        command("cargo test --no-fail-fast --lib --tests --package brisk-table --package brisk-loader --package brisk-train");
    tests.args(["--target", TARGET]).args(target::PROFILE).envs(variables.clone());
    tests.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", &wine).env("BRISK_TEST_GPU", "off");
    let tested = must(&mut tests);

    let here = example::run(Command::new(example::build(None, &[])?), &folder.join("here"))?;
    here.report("higgs on this machine");
    let mut program = Command::new(&wine);
    program.arg(example::build(Some(TARGET), &[])?).envs(variables);
    let there = example::run(program, &folder.join("there"))?;
    there.report("higgs on Windows (Wine)");
    here.check_identical(&there)?;
    eprintln!("trained parameters and metrics are bit-identical");
    tested
}

/// Makes sure that the compiler and Wine are installed; returns Wine's program.
fn ensure(install: Install) -> Result<String> {
    if env::consts::OS != "linux" || env::consts::ARCH != "x86_64" {
        bail!("Windows programs are run with Wine, on Linux on x86-64; this is {} on {}", env::consts::OS, env::consts::ARCH);
    }
    let wine = || WINE.into_iter().find(|wine| succeeds(&mut command(&format!("{wine} --version"))));
    let missing = || match (succeeds(&mut command(&format!("{COMPILER} --version"))), wine()) {
        (true, Some(wine)) => Ok(wine.to_owned()),
        (false, Some(_)) => Err(format!("no {COMPILER}")),
        (true, None) => Err("no wine64".to_owned()),
        (false, None) => Err(format!("no {COMPILER}, no wine64")),
    };
    let Err(parts) = missing() else { return missing().map_err(anyhow::Error::msg) };
    let ran = packages::install(&parts, &PACKAGES, install)?;
    missing().map_err(|parts| anyhow::anyhow!("{parts}, even after `{ran}`"))
}

/// Builds bcryptprimitives.dll, which Wine before version 9 lacks, and returns its folder.
fn system_library(folder: &Path) -> Result<PathBuf> {
    let libraries = folder.join("libraries");
    std::fs::create_dir_all(&libraries).with_context(|| format!("could not make the folder {}", libraries.display()))?;
    let mut compile = Command::new(COMPILER);
    compile.args(["-shared", "-O2", "-Wall", "-Werror", "-o"]).arg(libraries.join("bcryptprimitives.dll"));
    must(compile.arg(root().join("xtask/src/cross/bcryptprimitives.c")).arg("-ladvapi32"))?;
    Ok(libraries)
}
