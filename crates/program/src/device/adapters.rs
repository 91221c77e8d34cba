use brisk_kernels::wgpu;

use crate::device_info::{DeviceInfo, DeviceKind};

/// The adapters of all backends, discrete GPUs first, then integrated ones, software last; a GPU of two backends is there once.
pub(crate) fn open_adapters() -> Vec<(DeviceInfo, wgpu::Adapter)> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::PRIMARY,
        flags: wgpu::InstanceFlags::empty(),
        memory_budget_thresholds: wgpu::MemoryBudgetThresholds { for_resource_creation: Some(95), for_device_loss: None },
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let mut found: Vec<(DeviceInfo, wgpu::Adapter)> = Vec::new();
    for adapter in pollster::block_on(instance.enumerate_adapters(wgpu::Backends::PRIMARY)) {
        let info = adapter.get_info();
        if !found.iter().any(|(_, other)| is_same_gpu(&other.get_info(), &info)) {
            let kind = if info.device_type == wgpu::DeviceType::Cpu { DeviceKind::Software } else { DeviceKind::Gpu };
            found.push((DeviceInfo::new(info.name, kind, info.backend.to_string()), adapter));
        }
    }
    found.sort_by_key(|(_, adapter)| rank(adapter.get_info().device_type));
    found
}

fn is_same_gpu(a: &wgpu::AdapterInfo, b: &wgpu::AdapterInfo) -> bool {
    a.backend != b.backend && !a.device_pci_bus_id.is_empty() && a.device_pci_bus_id == b.device_pci_bus_id
}

fn rank(device_type: wgpu::DeviceType) -> u32 {
    match device_type {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::VirtualGpu => 1,
        wgpu::DeviceType::IntegratedGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    }
}
