//! Each pipeline is translated to SPIR-V, MSL and HLSL, by naga with the options of wgpu's Vulkan, Metal and DX12. It needs no
//! feature that one of the adapters that use it lacks, and keeps within their limits.

use std::collections::BTreeMap;

use brisk_kernels::*;
use naga::back::pipeline_constants::process_overrides;
use naga::{AddressSpace, CooperativeSize, ShaderStage};

use crate::pipeline::{Pipeline, Vulkan, parse};
use crate::reserved_words;
use crate::samples::{adapters, dispatches, every_sample};

/// An entry point with its constants, as bits.
type Key = (&'static str, Vec<(&'static str, u64)>);

/// How a module is used.
struct Uses {
    label: &'static str,
    /// The features of every adapter that uses it.
    features: wgpu::Features,
    /// With the limits of the first adapter, which are the smallest.
    pipelines: BTreeMap<Key, wgpu::Limits>,
}

#[test]
fn every_pipeline_translates_for_every_backend() {
    for (source, uses) in modules() {
        let (module, info) = parse(uses.label, &source, uses.features);
        assert_eq!(reserved_words::in_module(&module), [""; 0], "{}: identifiers of the WGSL", uses.label);
        for ((entry, constants), limits) in &uses.pipelines {
            let constants = constants.iter().map(|&(name, bits)| (name.to_owned(), f64::from_bits(bits))).collect();
            let what = format!("{} `{entry}` {constants:?}", uses.label);
            let processed = process_overrides(&module, &info, Some((ShaderStage::Compute, entry)), &constants);
            let (module, info) = processed.unwrap_or_else(|error| panic!("{what}: {error}"));
            let pipeline = Pipeline { module: &module, info: &info, entry, features: uses.features };
            check_limits(&pipeline, &what, limits);
            for vulkan in [Vulkan::Least, Vulkan::Current] {
                pipeline.to_spirv(vulkan).unwrap_or_else(|error| panic!("{what} to SPIR-V: {error}"));
            }
            // Each backend has the tensor cores that wgpu lists for it: Metal those of 8 by 8, DX12 none.
            if pipeline.coop() != Some(CooperativeSize::Sixteen) {
                let msl = pipeline.to_msl().unwrap_or_else(|error| panic!("{what} to MSL: {error}"));
                assert_eq!(reserved_words::in_text(&msl), [""; 0], "{what}: names declared in MSL");
            }
            if pipeline.coop().is_none() {
                let hlsl = pipeline.to_hlsl().unwrap_or_else(|error| panic!("{what} to HLSL: {error}"));
                assert_eq!(reserved_words::in_text(&hlsl), [""; 0], "{what}: names declared in HLSL");
            }
        }
    }
}

/// The modules of all samples on all adapters, by source, so that none is translated twice.
fn modules() -> BTreeMap<String, Uses> {
    let mut modules = BTreeMap::new();
    for adapter in &adapters() {
        for dispatch in every_sample().flat_map(|kernel| dispatches(&*kernel, adapter)) {
            let uses = modules.entry(dispatch.wgsl.source()).or_insert_with(|| Uses {
                label: dispatch.label,
                features: adapter.features,
                pipelines: BTreeMap::new(),
            });
            uses.features &= adapter.features;
            let constants = dispatch.constants.iter().map(|&(name, value)| (name, value.to_bits())).collect();
            uses.pipelines.entry((dispatch.entry, constants)).or_insert_with(|| adapter.limits.clone());
        }
    }
    modules
}

/// As wgpu does when it creates a pipeline.
fn check_limits(pipeline: &Pipeline<'_>, what: &str, limits: &wgpu::Limits) {
    let [entry] = &pipeline.module.entry_points[..] else { panic!("{what}: other entry points are left") };
    let [x, y, z] = entry.workgroup_size;
    let most = [limits.max_compute_workgroup_size_x, limits.max_compute_workgroup_size_y, limits.max_compute_workgroup_size_z];
    let within = x <= most[0] && y <= most[1] && z <= most[2] && x * y * z <= limits.max_compute_invocations_per_workgroup;
    assert!(within && x * y * z > 0, "{what}: workgroups of {x} by {y} by {z}");
    let in_groups = pipeline.module.global_variables.iter().filter(|(_, of)| of.space == AddressSpace::WorkGroup);
    let n_bytes: u32 = in_groups.map(|(_, of)| pipeline.module.types[of.ty].inner.size(pipeline.module.to_ctx())).sum();
    assert!(n_bytes <= limits.max_compute_workgroup_storage_size, "{what}: {n_bytes} bytes of workgroup memory");
    let n_storage = pipeline.bindings().iter().filter(|(_, space)| *space != AddressSpace::Uniform).count();
    assert!(n_storage <= limits.max_storage_buffers_per_shader_stage as usize, "{what}: {n_storage} storage buffers");
}
