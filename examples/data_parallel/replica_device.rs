//! The device of a replica, which depends on its host and the other replicas there.

use std::num::NonZero;
use std::thread::available_parallelism;

use anyhow::Result;
use brisk_nn::tensor::program::{Device, DeviceKind, Selection};
use brisk_train::DataParallel;

use crate::texts;

/// The device that a replica trains on.
#[derive(Debug)]
pub(crate) struct ReplicaDevice {
    pub(crate) device: Device,
    /// One line per replica: rank, device, host, process.
    pub(crate) everybody: Vec<String>,
}

impl ReplicaDevice {
    /// Opens the device of this replica: `devices` in turn, on each host.
    pub(crate) fn open(replicas: &DataParallel, devices: &[Selection]) -> Result<Self> {
        let host = host_name();
        let hosts = texts::gather(replicas, &host)?;
        let here: Vec<usize> = (0..hosts.len()).filter(|&rank| hosts[rank] == host).collect();
        let index = here.iter().position(|&rank| rank == replicas.rank()).unwrap_or(0);
        // Replicas on the CPU share its cores.
        let n_threads = available_parallelism().map_or(1, NonZero::get) / here.len();
        let device = Device::builder().selection(selection(devices, index)).threads(n_threads.max(1)).open()?;
        let me = format!("rank {}: {}, on {host}, process {}", replicas.rank(), device.info(), std::process::id());
        let everybody = texts::gather(replicas, &me)?;
        Ok(Self { device, everybody })
    }
}

/// The device of the replica with this index on its host.
fn selection(devices: &[Selection], index: usize) -> Selection {
    if !devices.is_empty() {
        return devices[index % devices.len()].clone();
    }
    if std::env::var_os("BRISK_DEVICE").is_some() {
        return Selection::from_env();
    }
    let hardware: Vec<usize> =
        Device::list().iter().enumerate().filter(|(_, info)| info.kind == DeviceKind::Gpu).map(|(i, _)| i).collect();
    if hardware.len() > 1 { Selection::Index(hardware[index % hardware.len()]) } else { Selection::Best }
}

/// The host name.
fn host_name() -> String {
    let named = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let asked = || {
        std::process::Command::new("hostname").output().ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    named
        .or_else(asked)
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}
