//! One device for all tests of this process.
//!
//! `BRISK_TEST_GPU`: `auto` (the default) uses an adapter if there is one, even a software one; `require` fails without one, and
//! if it lacks a feature that a check needs; `off` uses none.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, OnceLock};

use brisk_kernels::gpu::Recorder;
use brisk_kernels::{CoopShape, wgpu};

pub(crate) struct Gpu {
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(crate) recorder: Recorder,
}

/// The device, for one test at a time; `None`, after a message, if GPU checks do not run.
pub(crate) fn gpu() -> Option<MutexGuard<'static, Gpu>> {
    static GPU: OnceLock<Option<Mutex<Gpu>>> = OnceLock::new();
    // A test that failed while it held the lock did not break the device for the others.
    GPU.get_or_init(open).as_ref().map(|gpu| gpu.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// The same for a check that needs `features`; if the device lacks them, prints that the check does not run, or fails if GPU
/// checks are required.
pub(crate) fn gpu_with(features: wgpu::Features) -> Option<MutexGuard<'static, Gpu>> {
    let gpu = gpu()?;
    let adapter = gpu.recorder.adapter();
    let has = adapter.features.contains(features);
    if !has {
        assert!(wish() != "require", "BRISK_TEST_GPU=require, and `{}` lacks {features:?}; take `auto` there", adapter.name);
        say(&format!("NO CHECK RUNS that needs what `{}` lacks of {features:?}", adapter.name));
    }
    has.then_some(gpu)
}

fn open() -> Option<Mutex<Gpu>> {
    let wish = wish();
    if wish == "off" {
        say("BRISK_TEST_GPU=off: NO GPU CHECK RUNS, only the twins are tested");
        return None;
    }
    match pollster::block_on(find()) {
        Some((name, gpu)) => {
            say(&format!("GPU checks run on `{name}`"));
            Some(Mutex::new(gpu))
        }
        None => {
            assert!(wish == "auto", "BRISK_TEST_GPU=require, and there is no adapter; install Mesa's lavapipe or a driver");
            say("no adapter: NO GPU CHECK RUNS, only the twins are tested");
            None
        }
    }
}

fn wish() -> String {
    let wish = std::env::var("BRISK_TEST_GPU").unwrap_or_else(|_| "auto".to_owned());
    assert!(["off", "auto", "require"].contains(&wish.as_str()), "BRISK_TEST_GPU is `{wish}`, expected off, auto or require");
    wish
}

async fn find() -> Option<(String, Gpu)> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.flags = wgpu::InstanceFlags::empty();
    let instance = wgpu::Instance::new(descriptor);
    let mut adapters = instance.enumerate_adapters(wgpu::Backends::PRIMARY).await;
    adapters.sort_by_key(|adapter| match adapter.get_info().device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu | wgpu::DeviceType::VirtualGpu => 1,
        wgpu::DeviceType::Other => 2,
        wgpu::DeviceType::Cpu => 3,
    });
    let adapter = adapters.into_iter().next()?;
    let mut descriptor = wgpu::DeviceDescriptor {
        label: Some("tests"),
        required_features: adapter.features()
            & (wgpu::Features::SUBGROUP | wgpu::Features::SHADER_F16 | wgpu::Features::SHADER_INT64),
        required_limits: adapter.limits(),
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        ..Default::default()
    };
    let coop = CoopShape::request(&adapter, &mut descriptor);
    let (device, queue) = adapter.request_device(&descriptor).await.ok()?;
    Some((adapter.get_info().name, Gpu { recorder: Recorder::new(&device).with_coop(coop), device, queue }))
}

/// Writes past the capture of the test harness, so that it is also seen when all tests pass.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "\n{line}");
}
