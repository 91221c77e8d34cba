//! Checks whether the memory that a run needs is available, before any of it is allocated.

use brisk_nn::tensor::Graph;
use brisk_nn::tensor::program::Device;
use brisk_nn::{Optimizer, Parameters};

use crate::data_parallel::{DataParallel, StateMemory};
use crate::error::Error;
use crate::host_memory;

/// Refuses parameters whose training state does not fit, before rows are read and anything is recorded; then, given the recorded programs, a run whose
/// transients do not fit in addition to the state.
///
/// The bytes of all replicas on one host are added up. How much memory a hardware GPU has is not known beforehand; there the device's
/// [limit](Device::memory_limit) applies, if it has one.
pub(crate) fn check_memory(
    device: &Device,
    params: &Parameters,
    optimizer: &dyn Optimizer,
    averages: usize,
    graphs: &[&Graph],
    replicas: &DataParallel,
) -> Result<(), Error> {
    params.check()?;
    let memory = StateMemory { averages, ..StateMemory::of(params, optimizer, graphs)? };
    // In addition, the host keeps the best parameters so far, and those of the device pass through it.
    let copies = memory.values;
    let on_device = memory.state().saturating_add(memory.transients);
    let limit = device.memory_limit().map(|limit| limit.saturating_sub(device.allocated_bytes()));
    let refused = |needed_bytes: usize, copies: usize, n_replicas: usize, available_bytes: usize, place: String| {
        let largest = params.entries().iter().rev().max_by_key(|entry| entry.range.len());
        let largest = largest.map(|entry| (entry.name.clone(), entry.shape.clone())).unwrap_or_default();
        Err(Error::Memory { needed_bytes, available_bytes, place, n_replicas, memory, copies, largest: Box::new(largest) })
    };
    if let Some(limit) = limit.filter(|&limit| on_device > limit) {
        return refused(on_device, 0, 1, limit, format!("the limited memory of device `{}`", device.info().name));
    }
    let mine = if host_memory::is_used_by(device) { on_device.saturating_add(copies) } else { copies };
    let host = replicas.on_this_host(HostShare {
        needed_bytes: mine,
        available_bytes: host_memory::available_bytes(),
        n_replicas: 1,
    })?;
    match host.available_bytes {
        Some(available) if host.needed_bytes > available => {
            refused(host.needed_bytes, copies, host.n_replicas, available, "this machine".to_owned())
        }
        _ => Ok(()),
    }
}

/// What replicas on one host need together, and what the host has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostShare {
    pub(crate) needed_bytes: usize,
    pub(crate) available_bytes: Option<usize>,
    pub(crate) n_replicas: usize,
}

/// The message of [`Error::Memory`].
pub(crate) fn refusal(
    needed_bytes: usize,
    available_bytes: usize,
    place: &str,
    n_replicas: usize,
    memory: &StateMemory,
    copies: usize,
    (name, shape): &(String, Vec<usize>),
) -> String {
    let [needed, available] = [needed_bytes, available_bytes].map(bytes);
    let each = if n_replicas == 1 { String::new() } else { format!(" for {n_replicas} replicas, for each") };
    let StateMemory { values, gradients, optimizer, averages, transients } = *memory;
    let parts = [
        ("parameters", values),
        ("gradients", gradients),
        ("optimizer state", optimizer),
        ("averaged parameters", averages),
        ("activations", transients),
        ("copies of parameters on the host", copies),
    ];
    let parts = parts.into_iter().filter(|(_, n_bytes)| *n_bytes > 0).map(|(what, n_bytes)| format!("{what} {}", bytes(n_bytes)));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let largest = shape.iter().fold(size_of::<f32>(), |n_bytes, n| n_bytes.saturating_mul(*n));
    format!(
        "training takes {needed} of memory{each} ({parts}), but {place} has {available} available; the largest parameter is `{name}` {shape:?} with {}: make the layers or the batch smaller, or use a machine with more memory",
        bytes(largest)
    )
}

/// Bytes as a whole number below a KiB, else with one decimal in KiB, MiB, GiB or TiB.
pub(crate) fn bytes(n_bytes: usize) -> String {
    const KIB: f64 = 1024.0;
    let n = n_bytes as f64;
    match n {
        n if n < KIB => format!("{n} bytes"),
        n if n < KIB.powi(2) => format!("{:.1} KiB", n / KIB),
        n if n < KIB.powi(3) => format!("{:.1} MiB", n / KIB.powi(2)),
        n if n < KIB.powi(4) => format!("{:.1} GiB", n / KIB.powi(3)),
        n => format!("{:.1} TiB", n / KIB.powi(4)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_unit_that_suits() {
        let expected = [(40, "40 bytes"), (4096, "4.0 KiB"), (1536 << 10, "1.5 MiB"), (3 << 30, "3.0 GiB"), (5 << 40, "5.0 TiB")];
        for (n_bytes, text) in expected {
            assert_eq!(bytes(n_bytes), text);
        }
    }

    #[test]
    fn the_message_has_both_numbers_and_the_largest_parameter() {
        const GIB: usize = 1 << 30;
        let memory = StateMemory { values: 16 * GIB, gradients: 16 * GIB, optimizer: 32 * GIB, averages: 0, transients: 0 };
        let largest = ("layers.1.weight".to_owned(), vec![65536, 65536]);
        assert_eq!(
            refusal(80 * GIB, 21 * GIB, "this machine", 1, &memory, 16 * GIB, &largest),
            "training takes 80.0 GiB of memory (parameters 16.0 GiB, gradients 16.0 GiB, optimizer state 32.0 GiB, copies of parameters on the host 16.0 GiB), \
             but this machine has 21.0 GiB available; the largest parameter is `layers.1.weight` [65536, 65536] with 16.0 GiB: \
             make the layers or the batch smaller, or use a machine with more memory"
        );
        let two = refusal(160 * GIB, 21 * GIB, "this machine", 2, &memory, 16 * GIB, &largest);
        assert!(two.starts_with("training takes 160.0 GiB of memory for 2 replicas, for each (parameters 16.0 GiB, "), "{two}");
    }
}
