//! Executes a kernel on its twin and on the GPU, and compares.

use brisk_kernels::{Access, Adapter, AdapterKind, Arg, DType, Dispatch, Error, Kernel, Signature, TwinArgs, bytemuck, wgpu};
use half::{bf16, f16};

use crate::close::{DEFAULT, Tolerance, assert_close, tolerance};
use crate::gpu::{Gpu, gpu};

/// Elements of any type, in whole words.
pub(crate) type Words = Vec<u32>;

/// The initial content of an argument that is written in full: NaN, so that an element that was left out is detected.
const UNWRITTEN: u32 = 0x7FC0_0BAD;

pub(crate) fn words(floats: &[f32]) -> Words {
    bytemuck::cast_slice(floats).to_vec()
}

pub(crate) fn floats(words: &[u32]) -> &[f32] {
    bytemuck::cast_slice(words)
}

/// `floats`, rounded to f16 or bf16, two in a word.
pub(crate) fn half_words(dtype: DType, floats: &[f32]) -> Words {
    let half = |&v: &f32| match dtype {
        DType::F16 => f16::from_f32(v).to_bits(),
        _ => bf16::from_f32(v).to_bits(),
    };
    let mut halves: Vec<u16> = floats.iter().map(half).collect();
    halves.resize(halves.len().next_multiple_of(2), 0);
    bytemuck::pod_collect_to_vec(&halves)
}

/// The first `n` floats of `words`, stored as `dtype`.
pub(crate) fn floats_of(dtype: DType, words: &[u32], n: usize) -> Vec<f32> {
    let halves: &[u16] = bytemuck::cast_slice(words);
    match dtype {
        DType::F16 => halves[..n].iter().map(|&bits| f16::from_bits(bits).to_f32()).collect(),
        DType::Bf16 => halves[..n].iter().map(|&bits| bf16::from_bits(bits).to_f32()).collect(),
        _ => floats(words)[..n].to_vec(),
    }
}

/// One buffer per argument: those that are read take their content from `given`, in order.
pub(crate) fn buffers(args: &[Arg], given: &[Words]) -> Vec<Words> {
    let mut given = given.iter();
    let buffers: Vec<Words> = args
        .iter()
        .map(|arg| match arg.access {
            Access::Read | Access::ReadWrite => {
                let words = given.next().unwrap_or_else(|| panic!("no input for `{}`", arg.name));
                assert_eq!(words.len(), n_words(arg), "length of `{}`", arg.name);
                words.clone()
            }
            Access::Write | Access::Scratch => vec![UNWRITTEN; n_words(arg)],
        })
        .collect();
    assert!(given.next().is_none(), "more inputs than arguments that are read");
    buffers
}

fn n_words(arg: &Arg) -> usize {
    arg.len_bytes().div_ceil(4)
}

/// The results of the twin: the arguments that it writes, in order.
#[track_caller]
pub(crate) fn run_twin(kernel: &dyn Kernel, given: &[Words]) -> Vec<Words> {
    kernel.check().unwrap_or_else(|error| panic!("{error}"));
    let args = kernel.args();
    let mut buffers = buffers(&args, given);
    let mut twin_args = TwinArgs::new(&args);
    for (arg, words) in args.iter().zip(&mut buffers) {
        if arg.access.writes() {
            twin_args.push_write(&mut bytemuck::cast_slice_mut(words)[..arg.len_bytes()]);
        } else {
            twin_args.push_read(&bytemuck::cast_slice(words)[..arg.len_bytes()]);
        }
    }
    kernel.twin(&mut twin_args);
    results(&args, buffers)
}

/// The first result of the twin, as floats.
#[track_caller]
pub(crate) fn twin_floats(kernel: &dyn Kernel, given: &[Words]) -> Vec<f32> {
    floats(&run_twin(kernel, given)[0]).to_vec()
}

pub(crate) fn results(args: &[Arg], buffers: Vec<Words>) -> Vec<Words> {
    let is_result = |arg: &Arg| matches!(arg.access, Access::Write | Access::ReadWrite);
    args.iter().zip(buffers).filter(|(arg, _)| is_result(arg)).map(|(_, words)| words).collect()
}

/// The same on the GPU.
#[track_caller]
pub(crate) fn run_gpu(gpu: &mut Gpu, kernel: &dyn Kernel, given: &[Words]) -> Vec<Words> {
    let args = kernel.args();
    let held: Vec<wgpu::Buffer> = buffers(&args, given).iter().map(|words| upload(gpu, words)).collect();
    let bindings: Vec<_> = held.iter().map(wgpu::Buffer::as_entire_buffer_binding).collect();
    let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    gpu.recorder.record(kernel, &bindings, &mut encoder).unwrap_or_else(|error| panic!("{error}"));
    gpu.queue.submit([encoder.finish()]);
    results(&args, held.iter().zip(&args).map(|(buffer, arg)| download(gpu, buffer, n_words(arg))).collect())
}

pub(crate) fn upload(gpu: &Gpu, words: &[u32]) -> wgpu::Buffer {
    let buffer = gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: words.len() as u64 * 4,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    gpu.queue.write_buffer(&buffer, 0, bytemuck::cast_slice(words));
    buffer
}

pub(crate) fn download(gpu: &Gpu, buffer: &wgpu::Buffer, len: usize) -> Words {
    let size = len as u64 * 4;
    let staging = gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size,
        usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, size);
    gpu.queue.submit([encoder.finish()]);
    staging.slice(..).map_async(wgpu::MapMode::Read, |mapped| mapped.unwrap_or_else(|error| panic!("{error}")));
    gpu.device.poll(wgpu::PollType::wait_indefinitely()).unwrap_or_else(|error| panic!("{error}"));
    let view = staging.slice(..).get_mapped_range().unwrap_or_else(|error| panic!("{error}"));
    bytemuck::pod_collect_to_vec(&view)
}

/// Checks that the GPU gives the same as the twin, within the table's tolerance.
#[track_caller]
pub(crate) fn gpu_equals_twin(kernel: &dyn Kernel, given: &[Words]) {
    gpu_equals_twin_within(kernel, given, DEFAULT);
}

/// The same, with a different tolerance for the f32 results; the caller says why.
#[track_caller]
pub(crate) fn gpu_equals_twin_within(kernel: &dyn Kernel, given: &[Words], f32_tolerance: Tolerance) {
    let Some(mut gpu) = gpu() else { return };
    let (found, expected) = (run_gpu(&mut gpu, kernel, given), run_twin(kernel, given));
    drop(gpu);
    let args = kernel.args();
    let result_args = args.iter().filter(|arg| matches!(arg.access, Access::Write | Access::ReadWrite));
    for ((arg, found), expected) in result_args.zip(&found).zip(&expected) {
        let what = format!("{kernel:?}: {}", arg.name);
        match arg.dtype {
            DType::F32 => assert_close(&what, floats(found), floats(expected), f32_tolerance),
            // Values that are close before rounding may be rounded to different numbers.
            DType::F16 | DType::Bf16 => {
                let [found, expected] = [found, expected].map(|words| floats_of(arg.dtype, words, arg.len));
                assert_close(&what, &found, &expected, tolerance(arg.dtype));
            }
            _ => assert_eq!(found, expected, "{what}"),
        }
    }
}

/// Also checks the form that is meant for hardware, which any adapter can run, if slowly.
#[track_caller]
pub(crate) fn both_forms_equal_twin_within<K: Kernel + Clone>(kernel: &K, given: &[Words], f32_tolerance: Tolerance) {
    gpu_equals_twin_within(kernel, given, f32_tolerance);
    gpu_equals_twin_within(&AsOnHardware(Box::new(kernel.clone())), given, f32_tolerance);
}

/// A kernel whose adapter is declared as hardware.
#[derive(Debug)]
pub(crate) struct AsOnHardware(pub(crate) Box<dyn Kernel>);

impl Kernel for AsOnHardware {
    fn signature(&self) -> Signature {
        self.0.signature()
    }

    fn check(&self) -> Result<(), Error> {
        self.0.check()
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.0.dispatches(&adapter.clone().with_kind(AdapterKind::Hardware))
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.0.twin(args);
    }
}

/// Checks that the twin's results are bit-identical on rayon pools of 1, 2, 3 and 5 threads.
#[track_caller]
pub(crate) fn same_bits_on_any_pool(kernel: &dyn Kernel, given: &[Words]) {
    let on = |n_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap_or_else(|error| panic!("{error}"));
        pool.install(|| run_twin(kernel, given))
    };
    let one = on(1);
    for n_threads in [2, 3, 5] {
        assert!(on(n_threads) == one, "{kernel:?}: other bits on {n_threads} threads than on one");
    }
}

/// The slope of `loss` at `x` along `direction`, by a central difference of step `step`.
pub(crate) fn slope_along(x: &[f32], direction: &[f32], step: f32, loss: impl Fn(&[f32]) -> f64) -> f64 {
    let moved = |by: f32| -> Vec<f32> { x.iter().zip(direction).map(|(x, d)| x + by * d).collect() };
    let (above, below) = (moved(step), moved(-step));
    // The actual step, after rounding, is within an ulp of 2 step.
    (loss(&above) - loss(&below)) / (2.0 * f64::from(step))
}

/// Sum of products in f64.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}
