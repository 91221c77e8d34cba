//! The examples, built once, in the profile of this test.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

/// The example's program.
pub(crate) fn built(name: &'static str) -> PathBuf {
    static BUILT: Mutex<BTreeMap<&str, PathBuf>> = Mutex::new(BTreeMap::new());
    // Held while cargo builds: other builds would wait anyway.
    let mut built = BUILT.lock().expect("no build panics but in a test that then fails");
    built.entry(name).or_insert_with(|| build(name)).clone()
}

/// The program that `cargo xtask` runs.
#[cfg(all(unix, feature = "mpi"))]
pub(crate) fn xtask() -> PathBuf {
    let (profile_dir, mut build) = cargo_build();
    let status = build.args(["--package", "xtask"]).status().expect("cargo runs");
    assert!(status.success(), "xtask can be built");
    profile_dir.join("xtask")
}

fn build(name: &str) -> PathBuf {
    // In the same profile as this test, so that nothing is left to build.
    let features: &[&str] = if cfg!(feature = "all-formats") {
        &["--workspace", "--tests", "--all-features"]
    } else if cfg!(feature = "mpi") {
        &[
            "--package",
            "brisk-examples",
            "--package",
            "brisk-vision-examples",
            "--package",
            "brisk-replicate",
            "--features",
            "brisk-examples/mpi",
        ]
    } else {
        &["--package", "brisk-examples", "--package", "brisk-vision-examples"]
    };
    let (profile_dir, mut build) = cargo_build();
    let status = build.args(["--example", name]).args(features).status().expect("cargo runs");
    assert!(status.success(), "the example {name} can be built");
    profile_dir.join("examples").join(format!("{name}{}", env::consts::EXE_SUFFIX))
}

/// The folder of this test's profile, and the command that builds into it.
fn cargo_build() -> (PathBuf, Command) {
    let test = env::current_exe().expect("a process has an executable");
    // target/PROFILE/deps/it-HASH
    let profile_dir = test.ancestors().nth(2).expect("cargo puts tests below `deps`");
    let target_dir = profile_dir.parent().expect("a profile has a folder of its own");
    let profile = match profile_dir.file_name().and_then(OsStr::to_str) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--profile", profile]).arg("--target-dir").arg(target_dir);
    build.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    // The build scripts of some dependencies run again, and all that depends on them is built again, where these differ from
    // those of the build of the tests.
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_")) {
            build.env_remove(name);
        }
    }
    (profile_dir.to_owned(), build)
}
