//! A pipeline as wgpu's backends receive it: parsed, with its constants, translated by naga with the options of wgpu's Vulkan,
//! Metal and DX12.

use std::collections::BTreeSet;

use brisk_kernels::*;
use naga::back::{hlsl, msl, spv};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::{AddressSpace, CooperativeSize, ResourceBinding, ShaderStage, StorageAccess, TypeInner};

/// A pipeline as a backend receives it: constants in place of overrides, and nothing that its entry point does not use.
pub(crate) struct Pipeline<'a> {
    pub(crate) module: &'a naga::Module,
    pub(crate) info: &'a naga::valid::ModuleInfo,
    pub(crate) entry: &'static str,
    pub(crate) features: wgpu::Features,
}

/// The variant of SPIR-V for a Vulkan driver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Vulkan {
    /// For the minimal driver with the features.
    Least,
    /// For a current driver.
    Current,
}

/// The module, if it is valid on an adapter with `features`.
pub(crate) fn parse(what: &str, source: &str, features: wgpu::Features) -> (naga::Module, naga::valid::ModuleInfo) {
    let module =
        naga::front::wgsl::parse_str(source).unwrap_or_else(|error| panic!("{}", error.emit_to_string_with_path(source, what)));
    let mut capabilities = naga::valid::Capabilities::empty();
    capabilities.set(naga::valid::Capabilities::SUBGROUP, features.contains(wgpu::Features::SUBGROUP));
    capabilities.set(naga::valid::Capabilities::SHADER_FLOAT16, features.contains(wgpu::Features::SHADER_F16));
    capabilities.set(naga::valid::Capabilities::SHADER_INT64, features.contains(wgpu::Features::SHADER_INT64));
    let coop = features.contains(wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX);
    capabilities.set(naga::valid::Capabilities::COOPERATIVE_MATRIX, coop);
    let mut validator = naga::valid::Validator::new(naga::valid::ValidationFlags::all(), capabilities);
    validator.subgroup_stages(naga::valid::ShaderStages::COMPUTE).subgroup_operations(naga::valid::SubgroupOperationSet::all());
    let info = validator.validate(&module).unwrap_or_else(|error| panic!("{}", error.emit_to_string_with_path(source, what)));
    (module, info)
}

impl Pipeline<'_> {
    /// The size of the cooperative matrices that it uses.
    pub(crate) fn coop(&self) -> Option<CooperativeSize> {
        self.module.types.iter().find_map(|(_, of)| match of.inner {
            TypeInner::CooperativeMatrix { columns, .. } => Some(columns),
            _ => None,
        })
    }

    fn stage(&self) -> (ShaderStage, String) {
        (ShaderStage::Compute, self.entry.to_owned())
    }

    /// The bindings in order, with their address spaces.
    pub(crate) fn bindings(&self) -> Vec<(ResourceBinding, AddressSpace)> {
        let bound = self.module.global_variables.iter().filter_map(|(_, of)| Some((of.binding?, of.space)));
        let mut bindings: Vec<_> = bound.collect();
        bindings.sort_by_key(|(binding, _)| binding.binding);
        bindings
    }

    /// For a Vulkan driver: as wgpu writes it for a current one, or without anything that an adapter with `features` may lack, on
    /// Vulkan 1.1, which is the first version with subgroups. Cooperative matrices need 1.3.
    pub(crate) fn to_spirv(&self, vulkan: Vulkan) -> Result<Vec<u32>, spv::Error> {
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
        let is_least = vulkan == Vulkan::Least;
        let options = spv::Options {
            lang_version: if is_least && self.coop().is_none() { (1, 3) } else { (1, 6) },
            flags: spv::WriterFlags::LABEL_VARYINGS,
            fake_missing_bindings: false,
            binding_map: self.bindings().into_iter().map(place).collect(),
            capabilities: is_least.then(|| capabilities.concat().into_iter().collect()),
            bounds_check_policies: BoundsCheckPolicies {
                // A driver with robustBufferAccess2 checks buffers itself.
                buffer: if is_least { BoundsCheckPolicy::Restrict } else { BoundsCheckPolicy::Unchecked },
                ..bounds_checks()
            },
            zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
            force_loop_bounding: true,
            emit_int_div_checks: true,
            ..Default::default()
        };
        let of = spv::PipelineOptions { shader_stage: ShaderStage::Compute, entry_point: self.entry.to_owned() };
        spv::write_vec(self.module, self.info, &options, Some(&of))
    }

    /// For macOS 11, which is the first with subgroups, tensor cores and 64-bit integers.
    pub(crate) fn to_msl(&self) -> Result<String, Box<dyn std::error::Error>> {
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

    /// For the oldest shader model with the features; without any, that is 5.1, the one of FXC.
    pub(crate) fn to_hlsl(&self) -> Result<String, Box<dyn std::error::Error>> {
        let shader_model = if self.features.contains(wgpu::Features::SHADER_F16) {
            hlsl::ShaderModel::V6_2
        } else if self.features.intersects(wgpu::Features::SUBGROUP | wgpu::Features::SHADER_INT64) {
            hlsl::ShaderModel::V6_0
        } else {
            hlsl::ShaderModel::V5_1
        };
        // Uniforms, read-only and writable buffers are counted separately; the last uniform is the number of workgroups.
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
        // naga writes one zero for each alias of a type, all with the name of the type.
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

/// All checks that a driver may leave to wgpu.
fn bounds_checks() -> BoundsCheckPolicies {
    BoundsCheckPolicies { index: BoundsCheckPolicy::Restrict, buffer: BoundsCheckPolicy::Restrict, ..Default::default() }
}
