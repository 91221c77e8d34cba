//! Each pipeline becomes SPIR-V, MSL and HLSL, by naga with the options of wgpu's Vulkan, Metal and DX12. It needs no feature that one of the adapters
//! which are given it lacks, and keeps within their limits.

use std::collections::{BTreeMap, BTreeSet};

use brisk_kernels::*;
use naga::back::pipeline_constants::process_overrides;
use naga::back::{hlsl, msl, spv};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::{AddressSpace, CooperativeSize, ResourceBinding, ShaderStage, StorageAccess, TypeInner};

use crate::reserved_words;
use crate::wgsl::{adapters, dispatches, every_sample, parse, source};

/// An entry point with its constants, as bits.
type Key = (&'static str, Vec<(&'static str, u64)>);

/// How a module is used.
struct Uses {
    label: &'static str,
    /// Those of every adapter that is given it.
    features: wgpu::Features,
    /// With the limits of the first adapter, which are the least.
    pipelines: BTreeMap<Key, wgpu::Limits>,
}

/// A pipeline as a backend gets it: constants in place of overrides, and nothing that its entry point does not use.
struct Pipeline<'a> {
    module: &'a naga::Module,
    info: &'a naga::valid::ModuleInfo,
    entry: &'static str,
    features: wgpu::Features,
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
            pipeline.check_limits(&what, limits);
            pipeline.to_spirv().unwrap_or_else(|error| panic!("{what} to SPIR-V: {error}"));
            // Each backend has the matrix units that wgpu lists for it: Metal those of 8 by 8, DX12 none.
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
            let uses = modules.entry(source(&dispatch, adapter)).or_insert_with(|| Uses {
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

impl Pipeline<'_> {
    /// The size of the matrices that it multiplies by matrix units.
    fn coop(&self) -> Option<CooperativeSize> {
        self.module.types.iter().find_map(|(_, of)| match of.inner {
            TypeInner::CooperativeMatrix { columns, .. } => Some(columns),
            _ => None,
        })
    }

    fn stage(&self) -> (ShaderStage, String) {
        (ShaderStage::Compute, self.entry.to_owned())
    }

    /// What is bound, in the order of the bindings, with its address space.
    fn bindings(&self) -> Vec<(ResourceBinding, AddressSpace)> {
        let bound = self.module.global_variables.iter().filter_map(|(_, of)| Some((of.binding?, of.space)));
        let mut bindings: Vec<_> = bound.collect();
        bindings.sort_by_key(|(binding, _)| binding.binding);
        bindings
    }

    /// As wgpu does when it makes a pipeline.
    fn check_limits(&self, what: &str, limits: &wgpu::Limits) {
        let [entry] = &self.module.entry_points[..] else { panic!("{what}: other entry points are left") };
        let [x, y, z] = entry.workgroup_size;
        let most =
            [limits.max_compute_workgroup_size_x, limits.max_compute_workgroup_size_y, limits.max_compute_workgroup_size_z];
        let within = x <= most[0] && y <= most[1] && z <= most[2] && x * y * z <= limits.max_compute_invocations_per_workgroup;
        assert!(within && x * y * z > 0, "{what}: workgroups of {x} by {y} by {z}");
        let in_groups = self.module.global_variables.iter().filter(|(_, of)| of.space == AddressSpace::WorkGroup);
        let n_bytes: u32 = in_groups.map(|(_, of)| self.module.types[of.ty].inner.size(self.module.to_ctx())).sum();
        assert!(n_bytes <= limits.max_compute_workgroup_storage_size, "{what}: {n_bytes} bytes of workgroup memory");
        let n_storage = self.bindings().iter().filter(|(_, space)| *space != AddressSpace::Uniform).count();
        assert!(n_storage <= limits.max_storage_buffers_per_shader_stage as usize, "{what}: {n_storage} storage buffers");
    }

    /// For a driver of Vulkan 1.1, which is the first with subgroups; matrix units are from 1.3.
    fn to_spirv(&self) -> Result<Vec<u32>, spv::Error> {
        let with =
            |feature: wgpu::Features, of: &[spv::Capability]| if self.features.contains(feature) { of.to_vec() } else { vec![] };
        let capabilities = [
            vec![spv::Capability::Shader],
            with(
                wgpu::Features::SUBGROUP,
                &[
                    spv::Capability::GroupNonUniform,
                    spv::Capability::GroupNonUniformVote,
                    spv::Capability::GroupNonUniformArithmetic,
                    spv::Capability::GroupNonUniformBallot,
                    spv::Capability::GroupNonUniformShuffle,
                    spv::Capability::GroupNonUniformShuffleRelative,
                    spv::Capability::GroupNonUniformQuad,
                ],
            ),
            with(wgpu::Features::SHADER_INT64, &[spv::Capability::Int64]),
            with(wgpu::Features::SHADER_F16, &[spv::Capability::Float16]),
            with(
                wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX,
                &[spv::Capability::CooperativeMatrixKHR, spv::Capability::VulkanMemoryModel],
            ),
        ];
        let place = |(binding, _): (ResourceBinding, _)| {
            let ResourceBinding { group: descriptor_set, binding: place } = binding;
            (binding, spv::BindingInfo { descriptor_set, binding: place, binding_array_size: None })
        };
        let options = spv::Options {
            lang_version: if self.coop().is_some() { (1, 6) } else { (1, 3) },
            flags: spv::WriterFlags::LABEL_VARYINGS,
            fake_missing_bindings: false,
            binding_map: self.bindings().into_iter().map(place).collect(),
            capabilities: Some(capabilities.concat().into_iter().collect()),
            bounds_check_policies: bounds_checks(),
            zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
            ..Default::default()
        };
        let of = spv::PipelineOptions { shader_stage: ShaderStage::Compute, entry_point: self.entry.to_owned() };
        spv::write_vec(self.module, self.info, &options, Some(&of))
    }

    /// For macOS 11, which is the first with subgroups, matrix units and integers of 64 bits.
    fn to_msl(&self) -> Result<String, Box<dyn std::error::Error>> {
        let mut resources = msl::EntryPointResources::default();
        for (slot, (binding, space)) in (0..).zip(self.bindings()) {
            let target = msl::BindTarget { buffer: Some(slot), mutable: is_written(space), ..Default::default() };
            resources.resources.insert(binding, target);
            resources.sizes_buffer = Some(slot + 1);
        }
        let options = msl::Options {
            lang_version: (2, 3),
            per_entry_point_map: [(self.entry.to_owned(), resources)].into(),
            spirv_cross_compatibility: false,
            fake_missing_bindings: false,
            bounds_check_policies: bounds_checks(),
            zero_initialize_workgroup_memory: false,
            ..Default::default()
        };
        let of = msl::PipelineOptions { entry_point: Some(self.stage()), vertex_pulling_transform: true, ..Default::default() };
        let (msl, translated) = msl::write_string(self.module, self.info, &options, &of)?;
        translated.entry_point_names.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(msl)
    }

    /// For the oldest shader model with the features; 5.1, which is that of FXC, where there are none.
    fn to_hlsl(&self) -> Result<String, Box<dyn std::error::Error>> {
        let shader_model = if self.features.contains(wgpu::Features::SHADER_F16) {
            hlsl::ShaderModel::V6_2
        } else if self.features.intersects(wgpu::Features::SUBGROUP | wgpu::Features::SHADER_INT64) {
            hlsl::ShaderModel::V6_0
        } else {
            hlsl::ShaderModel::V5_1
        };
        // Uniforms, what is read and what is written count apart; the last uniform is the number of workgroups.
        let mut registers = [0..8, 0..8, 0..8];
        let mut next = |space| {
            let of = if space == AddressSpace::Uniform { 0 } else { 1 + usize::from(is_written(space)) };
            let register = registers[of].next().expect("no more than 8 buffers");
            hlsl::BindTarget { register, restrict_indexing: true, ..Default::default() }
        };
        let options = hlsl::Options {
            shader_model,
            binding_map: self.bindings().into_iter().map(|(binding, space)| (binding, next(space))).collect(),
            fake_missing_bindings: false,
            special_constants_binding: Some(next(AddressSpace::Uniform)),
            zero_initialize_workgroup_memory: false,
            ..Default::default()
        };
        let of = hlsl::PipelineOptions { entry_point: Some(self.stage()) };
        let mut hlsl = String::new();
        let translated = hlsl::Writer::new(&mut hlsl, &options, &of).write(self.module, self.info, None)?;
        translated.entry_point_names.into_iter().collect::<Result<Vec<_>, _>>()?;
        // naga writes one zero for each alias of a type, all by the name of the type.
        let mut heads = BTreeSet::new();
        match hlsl.lines().filter(|line| line.ends_with("() {")).find(|line| !heads.insert(line.to_owned())) {
            Some(twice) => Err(format!("`{twice}` is defined twice").into()),
            None => Ok(hlsl),
        }
    }
}

fn is_written(space: AddressSpace) -> bool {
    matches!(space, AddressSpace::Storage { access } if access.contains(StorageAccess::STORE))
}

/// All that a driver may leave to wgpu.
fn bounds_checks() -> BoundsCheckPolicies {
    BoundsCheckPolicies { index: BoundsCheckPolicy::Restrict, buffer: BoundsCheckPolicy::Restrict, ..Default::default() }
}
