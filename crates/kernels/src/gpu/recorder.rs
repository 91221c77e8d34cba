use std::collections::HashMap;
use std::task::{Context, Poll, Waker};

use crate::adapter::adapter::Adapter;
use crate::adapter::coop_shape::CoopShape;
use crate::adapter::matmul_family::MatmulFamily;
use crate::arg::{Access, Arg};
use crate::error::Error;
use crate::kernel::kernel::Kernel;
use crate::shader::dispatch::{Dispatch, MAX_WORKGROUPS};
use crate::shader::module::Module;
use crate::shader::unchecked::create_shader_module;
use crate::sizes::in_u32;

/// Creates and caches the pipelines of one device.
#[derive(Debug)]
pub struct Recorder {
    pub(super) device: wgpu::Device,
    adapter: Adapter,
    pipelines: HashMap<PipelineKey, Pipeline>,
    cache: Option<wgpu::PipelineCache>,
}

/// A kernel whose pipelines, bind groups and parameters have been created: encoding it again takes three calls per dispatch. The
/// default does nothing.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
struct Step {
    label: &'static str,
    pipeline: wgpu::ComputePipeline,
    bind_group: wgpu::BindGroup,
    workgroups: [u32; 3],
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct PipelineKey {
    wgsl: Module,
    entry: &'static str,
    constants: Vec<(&'static str, u64)>,
    uniform: bool,
    n_reads: usize,
    n_writes: usize,
}

#[derive(Debug, Clone)]
struct Pipeline {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
}

impl Recorder {
    /// A recorder for `device`, without pipelines.
    pub fn new(device: &wgpu::Device) -> Self {
        Self { device: device.clone(), adapter: Adapter::of(device), pipelines: HashMap::new(), cache: None }
    }

    /// Uses a driver's pipeline cache, to which pipelines that are created here are added.
    pub fn with_cache(self, cache: wgpu::PipelineCache) -> Self {
        Self { cache: Some(cache), ..self }
    }

    /// Uses cooperative matrices: `shape` is what [`CoopShape::request`] returned when the device was opened.
    pub fn with_coop(mut self, shape: Option<CoopShape>) -> Self {
        self.adapter.coop = shape;
        self
    }

    /// Computes matrix products of any shape by `family`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the device cannot run it.
    pub fn with_matmul_family(mut self, family: MatmulFamily) -> Result<Self, Error> {
        family.check("matmul", &self.adapter)?;
        self.adapter.matmul_family = Some(family);
        Ok(self)
    }

    /// Allows the accumulation of f16 products in f16: see [`Adapter::f16_accumulation`].
    pub fn with_f16_accumulation(mut self) -> Self {
        self.adapter.f16_accumulation = true;
        self
    }

    /// The properties of the adapter that kernels receive.
    pub fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    /// How many pipelines have been created.
    pub fn n_pipelines(&self) -> usize {
        self.pipelines.len()
    }

    /// Records `kernel` over `buffers` into `encoder`, as one compute pass.
    ///
    /// `buffers` are in the order of the kernel's [`args`](Kernel::args), including scratch, created with
    /// `BufferUsages::STORAGE`.
    ///
    /// # Errors
    /// Those of [`Kernel::check`] and [`Kernel::dispatches`]; [`Error::ArgCount`], [`Error::BufferLen`], [`Error::BindingLimit`],
    /// [`Error::SharedBuffer`], [`Error::Binding`], [`Error::DispatchArg`], [`Error::ReadOnlyArg`], [`Error::UnwrittenArg`],
    /// [`Error::Workgroups`], [`Error::Pipeline`]. In that case nothing has been recorded.
    pub fn record(
        &mut self,
        kernel: &dyn Kernel,
        buffers: &[wgpu::BufferBinding<'_>],
        encoder: &mut wgpu::CommandEncoder,
    ) -> Result<(), Error> {
        let recorded = self.prepare(kernel, buffers)?;
        let mut pass =
            encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some(kernel.name()), timestamp_writes: None });
        recorded.encode(&mut pass);
        Ok(())
    }

    /// Creates once what replays of `kernel` over `buffers` need.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn prepare(&mut self, kernel: &dyn Kernel, buffers: &[wgpu::BufferBinding<'_>]) -> Result<Recorded, Error> {
        kernel.check()?;
        let args = kernel.args();
        self.check(kernel.name(), &args, buffers)?;
        let exact: Vec<_> = args.iter().zip(buffers).map(|(arg, binding)| exact_binding(arg, binding)).collect();
        let dispatches = kernel.dispatches(&self.adapter)?;
        for dispatch in &dispatches {
            check_dispatch(kernel.name(), dispatch, &args, buffers)?;
        }
        let is_written = |index: usize| dispatches.iter().any(|dispatch| dispatch.writes.contains(&index));
        let mut outputs = args.iter().enumerate().filter(|(_, arg)| matches!(arg.access, Access::Write | Access::ReadWrite));
        if let Some((_, arg)) = outputs.find(|(index, _)| !is_written(*index)) {
            return Err(Error::UnwrittenArg { kernel: kernel.name(), arg: arg.name });
        }
        let steps = dispatches.iter().map(|dispatch| self.step(dispatch, &exact)).collect::<Result<_, _>>()?;
        Ok(Recorded { steps })
    }

    fn check(&self, kernel: &'static str, args: &[Arg], buffers: &[wgpu::BufferBinding<'_>]) -> Result<(), Error> {
        if args.len() != buffers.len() {
            return Err(Error::ArgCount { kernel, expected: args.len(), found: buffers.len() });
        }
        let limit_bytes = self.adapter.limits.max_storage_buffer_binding_size;
        for (arg, binding) in args.iter().zip(buffers) {
            arg.check(kernel)?;
            let found = binding.size.map_or_else(|| binding.buffer.size().saturating_sub(binding.offset), |size| size.get());
            let expected = arg.len_bytes() as u64;
            if found < expected {
                return Err(Error::BufferLen { kernel, arg: arg.name, dtype: arg.dtype, expected, found });
            }
            if expected > limit_bytes {
                let adapter = self.adapter.name.clone();
                return Err(Error::BindingLimit { kernel, arg: arg.name, len_bytes: expected, adapter, limit_bytes });
            }
        }
        Ok(())
    }

    fn step(&mut self, dispatch: &Dispatch, buffers: &[wgpu::BufferBinding<'_>]) -> Result<Step, Error> {
        let Pipeline { pipeline, layout } = self.pipeline(dispatch)?;
        let params = (!dispatch.params.is_empty()).then(|| uniform(&self.device, dispatch));
        let first = usize::from(params.is_some());
        let mut entries = Vec::with_capacity(first + dispatch.reads.len() + dispatch.writes.len());
        if let Some(params) = &params {
            entries.push(wgpu::BindGroupEntry { binding: 0, resource: params.as_entire_binding() });
        }
        for (i, &arg) in dispatch.reads.iter().chain(&dispatch.writes).enumerate() {
            let resource = wgpu::BindingResource::Buffer(buffers[arg].clone());
            entries.push(wgpu::BindGroupEntry { binding: in_u32(first + i), resource });
        }
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let bind_group = self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(dispatch.label),
            layout: &layout,
            entries: &entries,
        });
        if let Some(error) = ready(scope.pop()) {
            let (label, adapter) = (dispatch.label.to_owned(), self.adapter.name.clone());
            return Err(Error::Binding { label, adapter, reason: error.to_string() });
        }
        Ok(Step { label: dispatch.label, pipeline, bind_group, workgroups: dispatch.workgroups })
    }

    fn pipeline(&mut self, dispatch: &Dispatch) -> Result<Pipeline, Error> {
        let key = PipelineKey {
            wgsl: dispatch.wgsl.clone(),
            entry: dispatch.entry,
            constants: dispatch.constants.iter().map(|&(name, value)| (name, value.to_bits())).collect(),
            uniform: !dispatch.params.is_empty(),
            n_reads: dispatch.reads.len(),
            n_writes: dispatch.writes.len(),
        };
        if let Some(known) = self.pipelines.get(&key) {
            return Ok(known.clone());
        }
        let made = make_pipeline(self, dispatch, &key)?;
        self.pipelines.insert(key, made.clone());
        Ok(made)
    }
}

impl Recorded {
    /// Encodes the kernel into a pass that is already open.
    pub fn encode(&self, pass: &mut wgpu::ComputePass<'_>) {
        encode_all([self], pass);
    }

    /// The labels of its dispatches, which name the form that is executed: `kernels.matmul.tiled`.
    pub fn labels(&self) -> impl Iterator<Item = &'static str> {
        self.steps.iter().map(|step| step.label)
    }

    /// The number of dispatches.
    pub fn n_dispatches(&self) -> usize {
        self.steps.len()
    }
}

/// Encodes kernels in order into a pass that is already open. A pipeline is not set again if the next dispatch uses the same one.
pub fn encode_all<'a>(kernels: impl IntoIterator<Item = &'a Recorded>, pass: &mut wgpu::ComputePass<'_>) {
    let mut set = None;
    for step in kernels.into_iter().flat_map(|kernel| &kernel.steps) {
        if set != Some(&step.pipeline) {
            pass.set_pipeline(&step.pipeline);
            set = Some(&step.pipeline);
        }
        pass.set_bind_group(0, &step.bind_group, &[]);
        pass.dispatch_workgroups(step.workgroups[0], step.workgroups[1], step.workgroups[2]);
    }
}

/// Checks that the arguments that `dispatch` binds exist and that it may write those it does, and that none of its buffers is
/// bound for both reading and writing.
fn check_dispatch(
    kernel: &'static str,
    dispatch: &Dispatch,
    args: &[Arg],
    buffers: &[wgpu::BufferBinding<'_>],
) -> Result<(), Error> {
    let label = dispatch.label;
    if let Some(&found) = dispatch.reads.iter().chain(&dispatch.writes).find(|&&arg| arg >= args.len()) {
        return Err(Error::DispatchArg { label, kernel, found, n_args: args.len() });
    }
    if let Some(&found) = dispatch.writes.iter().find(|&&arg| !args[arg].access.writes()) {
        return Err(Error::ReadOnlyArg { label, arg: args[found].name });
    }
    if !dispatch.workgroups.iter().all(|n| (1..=MAX_WORKGROUPS).contains(n)) {
        return Err(Error::Workgroups { label, found: dispatch.workgroups });
    }
    for &read in &dispatch.reads {
        for &written in &dispatch.writes {
            if buffers[read].buffer == buffers[written].buffer {
                return Err(Error::SharedBuffer { label, read: args[read].name, written: args[written].name });
            }
        }
    }
    Ok(())
}

/// The binding limited to the argument's length, which kernels get from `arrayLength`.
fn exact_binding<'a>(arg: &Arg, binding: &wgpu::BufferBinding<'a>) -> wgpu::BufferBinding<'a> {
    let len_bytes = (arg.len_bytes() as u64).next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT);
    wgpu::BufferBinding { buffer: binding.buffer, offset: binding.offset, size: std::num::NonZero::new(len_bytes) }
}

fn uniform(device: &wgpu::Device, dispatch: &Dispatch) -> wgpu::Buffer {
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some(dispatch.label),
        size: dispatch.params.len().next_multiple_of(16) as u64,
        usage: wgpu::BufferUsages::UNIFORM,
        mapped_at_creation: true,
    });
    if let Ok(mut view) = buffer.slice(..dispatch.params.len() as u64).get_mapped_range_mut() {
        view.slice(..).copy_from_slice(&dispatch.params);
    }
    buffer.unmap();
    buffer
}

fn make_pipeline(recorder: &Recorder, dispatch: &Dispatch, key: &PipelineKey) -> Result<Pipeline, Error> {
    let Recorder { device, adapter, cache, .. } = recorder;
    // Errors of naga and of the driver.
    let driver = device.push_error_scope(wgpu::ErrorFilter::Internal);
    let scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
    let module = create_shader_module(device, dispatch.label, &dispatch.wgsl);
    let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some(dispatch.label),
        entries: &layout_entries(key),
    });
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some(dispatch.label),
        bind_group_layouts: &[Some(&layout)],
        immediate_size: 0,
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some(dispatch.label),
        layout: Some(&pipeline_layout),
        module: &module,
        entry_point: Some(dispatch.entry),
        compilation_options: wgpu::PipelineCompilationOptions {
            constants: &dispatch.constants,
            zero_initialize_workgroup_memory: false,
        },
        cache: cache.as_ref(),
    });
    let refused = ready(scope.pop());
    match refused.or(ready(driver.pop())) {
        None => Ok(Pipeline { pipeline, layout }),
        Some(error) => {
            Err(Error::Pipeline { label: dispatch.label.to_owned(), adapter: adapter.name.clone(), reason: error.to_string() })
        }
    }
}

fn layout_entries(key: &PipelineKey) -> Vec<wgpu::BindGroupLayoutEntry> {
    let uniform = key.uniform.then_some(wgpu::BufferBindingType::Uniform);
    let storage = |read_only| wgpu::BufferBindingType::Storage { read_only };
    uniform
        .into_iter()
        .chain(std::iter::repeat_n(storage(true), key.n_reads))
        .chain(std::iter::repeat_n(storage(false), key.n_writes))
        .enumerate()
        .map(|(binding, ty)| wgpu::BindGroupLayoutEntry {
            binding: in_u32(binding),
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset: false, min_binding_size: None },
            count: None,
        })
        .collect()
}

/// The value of a future that is ready immediately, as those of error scopes are on every native backend.
pub(super) fn ready<T>(future: impl Future<Output = Option<T>>) -> Option<T> {
    let mut context = Context::from_waker(Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => None,
    }
}
