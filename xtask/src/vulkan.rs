//! Finds a Vulkan adapter for the tests; on Linux without one, installs Mesa's software driver.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::packages::{self, Install, Packages};
use crate::shell::command;

/// The parts of Vulkan that a Linux machine has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Found {
    /// libvulkan.so.1, which loads drivers.
    loader: bool,
    /// A driver that computes on the CPU.
    software: bool,
    /// A driver for a card, and a card.
    hardware: bool,
}

impl Found {
    fn is_enough(self) -> bool {
        self.loader && (self.software || self.hardware)
    }
}

const PACKAGES: Packages = Packages {
    provides: "Mesa's software driver (lavapipe) and the Vulkan loader",
    names: &[
        ("apt-get", "mesa-vulkan-drivers libvulkan1"),
        ("dnf", "mesa-vulkan-drivers vulkan-loader"),
        ("pacman", "vulkan-swrast vulkan-icd-loader"),
        ("apk", "mesa-vulkan-swrast vulkan-loader"),
        ("zypper", "libvulkan_lvp libvulkan1"),
    ],
};

const DRIVER_FOLDERS: [&str; 3] = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"];
const LIBRARY_FOLDERS: [&str; 7] =
    ["/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
/// Device files of cards: with a kernel driver, with NVIDIA's driver, and in the Windows Subsystem for Linux.
const CARDS: [&str; 3] = ["/dev/dri/renderD128", "/dev/nvidia0", "/dev/dxg"];

/// Makes sure that tests find an adapter. macOS and Windows include one; DirectX has a software adapter.
pub(crate) fn ensure(install: Install) -> Result<()> {
    if !cfg!(target_os = "linux") {
        eprintln!("{} includes an adapter", env::consts::OS);
        return Ok(());
    }
    let found = survey();
    if found.is_enough() {
        eprintln!("{}", described(found));
        return Ok(());
    }
    let missing = format!("no Vulkan adapter ({})", described(found));
    let ran = packages::install(&missing, &PACKAGES, install)?;
    let found = survey();
    if !found.is_enough() {
        bail!("there is still no Vulkan adapter after `{ran}` ({})", described(found));
    }
    Ok(())
}

/// The device besides `cpu` that every case runs on: the software adapter if there is one, since it is the same on all machines.
pub(crate) fn tested_device() -> Result<&'static str> {
    match env::consts::OS {
        "macos" => Ok("gpu"),
        "windows" => Ok("software"),
        _ => match survey() {
            found if !found.is_enough() => {
                bail!("no Vulkan adapter ({}); `cargo xtask test --only adapter` installs one", described(found))
            }
            Found { software: true, .. } => Ok("software"),
            _ => Ok("gpu"),
        },
    }
}

fn survey() -> Found {
    // As in the Vulkan loader: the newer variable overrides the older, and both override the folders.
    let named = env::var_os("VK_DRIVER_FILES").or_else(|| env::var_os("VK_ICD_FILENAMES"));
    let places: Vec<PathBuf> = match &named {
        Some(named) => env::split_paths(named).collect(),
        None => DRIVER_FOLDERS.iter().map(PathBuf::from).collect(),
    };
    let card = CARDS.iter().any(|card| Path::new(card).exists());
    let (software, other) = drivers(&places);
    Found { loader: has_loader(), software, hardware: other && card }
}

/// Whether `places`, which are manifests or folders of manifests, name a driver that needs no card, and one that needs a card.
fn drivers(places: &[PathBuf]) -> (bool, bool) {
    let (mut software, mut other) = (false, false);
    let in_folder =
        |place: &PathBuf| std::fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    for manifest in places.iter().flat_map(|place| if place.is_dir() { in_folder(place) } else { vec![place.clone()] }) {
        if !manifest.is_file() || manifest.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let name = manifest.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let needs_no_card = ["lvp", "lavapipe", "swrast", "swiftshader"].iter().any(|part| name.contains(part));
        software |= needs_no_card;
        other |= !needs_no_card;
    }
    (software, other)
}

fn has_loader() -> bool {
    const NAME: &str = "libvulkan.so.1";
    let listed = ["ldconfig -p", "/sbin/ldconfig -p"]
        .iter()
        .any(|line| command(line).output().is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(NAME)));
    let added = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    listed || LIBRARY_FOLDERS.iter().map(PathBuf::from).chain(env::split_paths(&added)).any(|folder| folder.join(NAME).exists())
}

fn described(found: Found) -> String {
    let word = |there: bool| if there { "found" } else { "missing" };
    let Found { loader, software, hardware } = found;
    format!("loader {}, software driver {}, card with a driver {}", word(loader), word(software), word(hardware))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_drivers(files: &[&str], expected: (bool, bool)) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for file in files {
            std::fs::write(folder.path().join(file), "{}").expect("the folder can be written to");
        }
        assert_eq!(drivers(&[folder.path().to_owned()]), expected, "{files:?} as a folder");
        let named: Vec<PathBuf> = files.iter().map(|file| folder.path().join(file)).collect();
        assert_eq!(drivers(&named), expected, "{files:?} by name");
    }

    #[test]
    fn drivers_are_distinguished_by_their_manifests() {
        check_drivers(&[], (false, false));
        check_drivers(&["lvp_icd.x86_64.json"], (true, false));
        check_drivers(&["radeon_icd.x86_64.json", "readme.txt"], (false, true));
        check_drivers(&["nvidia_icd.json", "vk_swiftshader_icd.json"], (true, true));
    }

    #[test]
    fn a_missing_manifest_is_ignored() {
        assert_eq!(drivers(&[PathBuf::from("no/such/lvp_icd.json")]), (false, false));
    }

    #[test]
    fn a_driver_needs_the_loader_and_a_card() {
        assert!(Found { loader: true, software: true, hardware: false }.is_enough());
        assert!(Found { loader: true, software: false, hardware: true }.is_enough());
        assert!(!Found { loader: false, software: true, hardware: true }.is_enough());
        assert!(!Found { loader: true, software: false, hardware: false }.is_enough());
    }
}
