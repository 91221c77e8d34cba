//! Checks whether the memory that a run needs is available, before any of it is allocated.

use brisk_nn::tensor::Graph;
use brisk_nn::tensor::program::Device;
use brisk_nn::{Entry, Optimizer, Parameters};

use crate::data_parallel::{DataParallel, HostShare, StateMemory};
use crate::error::Error;
use crate::error::phrases::bytes;
use crate::host_memory;

/// Refuses parameters whose training state does not fit, before rows are read and anything is recorded; then, given the recorded
/// programs, a run whose transients do not fit in addition to the state.
///
/// The bytes of all replicas on one host are added up. How much memory a hardware GPU has is not known beforehand; there the
/// device's [limit](Device::memory_limit) applies, if it has one.
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
    let StateMemory { values, gradients, optimizer, averages, transients } = memory;
    let refused = |needed_bytes: usize, copies: usize, n_replicas: usize, available_bytes: usize, place: String| {
        let parts = vec![
            ("parameters", values),
            ("gradients", gradients),
            ("optimizer state", optimizer),
            ("averaged parameters", averages),
            ("activations", transients),
            ("copies of parameters on the host", copies),
        ];
        let way_out = way_out(params).into();
        Err(Error::Memory { what: "training".to_owned(), needed_bytes, available_bytes, place, n_replicas, parts, way_out })
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

/// Names the largest parameter, and what to do.
fn way_out(params: &Parameters) -> String {
    let largest = params.entries().iter().rev().max_by_key(|entry| entry.range.len());
    let largest = largest.map_or(String::new(), |Entry { name, shape, .. }| {
        let n_bytes = shape.iter().fold(size_of::<f32>(), |n_bytes, n| n_bytes.saturating_mul(*n));
        format!("the largest parameter is `{name}` {shape:?} with {}: ", bytes(n_bytes))
    });
    format!("{largest}make the layers or the batch smaller, or use a machine with more memory")
}
