//! Whether there is a Vulkan adapter for the tests, and on Linux Mesa's software driver where there is none.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::packages::{self, Manager};
use crate::shell::command;
use crate::stages::Install;

/// What a Linux machine has of Vulkan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Found {
    /// libvulkan.so.1, which finds drivers.
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

#[rustfmt::skip]
const MANAGERS: [Manager; 5] = [
    Manager { program: "apt-get", before: Some("apt-get update"), install: "apt-get install -y mesa-vulkan-drivers libvulkan1" },
    Manager { program: "dnf", before: None, install: "dnf install -y mesa-vulkan-drivers vulkan-loader" },
    Manager { program: "pacman", before: None, install: "pacman -Sy --noconfirm --needed vulkan-swrast vulkan-icd-loader" },
    Manager { program: "apk", before: None, install: "apk add mesa-vulkan-swrast vulkan-loader" },
    Manager { program: "zypper", before: None, install: "zypper --non-interactive install libvulkan_lvp libvulkan1" },
];

const DRIVER_FOLDERS: [&str; 3] = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"];
const LIBRARY_FOLDERS: [&str; 7] =
    ["/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"];
/// A card shows as one of these: any with a kernel driver, NVIDIA's own, and the one of Windows seen from its Linux.
const CARDS: [&str; 3] = ["/dev/dri/renderD128", "/dev/nvidia0", "/dev/dxg"];

/// Makes sure that tests find an adapter. Metal and DirectX are part of their systems, the latter with a software adapter.
pub(crate) fn ensure(install: Install) -> Result<()> {
    if !cfg!(target_os = "linux") {
        eprintln!("{} brings its own", env::consts::OS);
        return Ok(());
    }
    let found = survey();
    if found.is_enough() {
        eprintln!("{}", described(found));
        return Ok(());
    }
    let missing = format!("no Vulkan adapter ({})", described(found));
    let ran = packages::install(&missing, "Mesa's software driver (lavapipe) and the Vulkan loader", &MANAGERS, install)?;
    let found = survey();
    if !found.is_enough() {
        bail!("`{ran}` ran, and there still is no Vulkan adapter ({})", described(found));
    }
    Ok(())
}

/// The device beside `cpu` that every case is run on: the software adapter where there is one, since it is the same everywhere.
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
    // The newer name wins over the older, either over the folders: as the loader does it.
    let named = env::var_os("VK_DRIVER_FILES").or_else(|| env::var_os("VK_ICD_FILENAMES"));
    let places: Vec<PathBuf> = match &named {
        Some(named) => env::split_paths(named).collect(),
        None => DRIVER_FOLDERS.iter().map(PathBuf::from).collect(),
    };
    let card = CARDS.iter().any(|card| Path::new(card).exists());
    let (software, other) = drivers(&places);
    Found { loader: has_loader(), software, hardware: other && card }
}

/// Whether `places`, manifests or folders of them, name a driver that needs no card, and one that does.
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
    fn drivers_are_told_apart_by_their_manifests() {
        check_drivers(&[], (false, false));
        check_drivers(&["lvp_icd.x86_64.json"], (true, false));
        check_drivers(&["radeon_icd.x86_64.json", "readme.txt"], (false, true));
        check_drivers(&["nvidia_icd.json", "vk_swiftshader_icd.json"], (true, true));
    }

    #[test]
    fn a_manifest_that_is_named_and_not_there_does_not_count() {
        assert_eq!(drivers(&[PathBuf::from("no/such/lvp_icd.json")]), (false, false));
    }

    #[test]
    fn a_driver_without_the_loader_or_a_card_is_not_enough() {
        assert!(Found { loader: true, software: true, hardware: false }.is_enough());
        assert!(Found { loader: true, software: false, hardware: true }.is_enough());
        assert!(!Found { loader: false, software: true, hardware: true }.is_enough());
        assert!(!Found { loader: true, software: false, hardware: false }.is_enough());
    }
}
