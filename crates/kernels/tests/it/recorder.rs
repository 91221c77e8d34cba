//! The recorder from a caller's view: its errors, the caller's own kernel, device and encoder.

use brisk_kernels::gpu::Recorder;
use brisk_kernels::*;

use crate::gpu::{Gpu, gpu};
use crate::run::*;

fn buffer(gpu: &Gpu, len: usize) -> wgpu::Buffer {
    upload(gpu, &vec![0; len])
}

#[track_caller]
fn refused(gpu: &mut Gpu, kernel: &dyn Kernel, buffers: &[wgpu::BufferBinding<'_>]) -> Error {
    let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let error = gpu.recorder.record(kernel, buffers, &mut encoder).expect_err("it should be refused");
    // Nothing was recorded, so the encoder can still be used.
    gpu.queue.submit([encoder.finish()]);
    error
}

#[test]
fn a_wrong_number_of_buffers_is_refused() {
    let Some(mut gpu) = gpu() else { return };
    let x = buffer(&gpu, 4);
    let error = refused(&mut gpu, &Map::binary(4, |a, b| a + b), &[x.as_entire_buffer_binding()]);
    assert_eq!(error, Error::ArgCount { kernel: "map", expected: 3, found: 1 });
    assert_eq!(error.to_string(), "map: got 1 buffers, expected 3, in the order of its argument list");
}

#[test]
fn a_short_buffer_is_refused() {
    let Some(mut gpu) = gpu() else { return };
    let (a, b, y) = (buffer(&gpu, 4), buffer(&gpu, 3), buffer(&gpu, 4));
    let bindings = [&a, &b, &y].map(wgpu::Buffer::as_entire_buffer_binding);
    let error = refused(&mut gpu, &Map::binary(4, |a, b| a + b), &bindings);
    assert_eq!(error.to_string(), "map: `x1` needs 16 bytes (F32), the buffer range has 12");
}

#[test]
fn more_than_the_adapter_binds_is_refused() {
    let Some(mut gpu) = gpu() else { return };
    // An artificial limit, since a buffer beyond the real one takes too much memory for a test.
    let mut limits = wgpu::Limits::downlevel_defaults();
    limits.max_storage_buffer_binding_size = 1 << 16;
    let Ok((device, _)) = pollster::block_on(request(limits)) else { return };
    let mut recorder = Recorder::new(&device);
    let whole = |len: u64| {
        device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: len,
            usage: wgpu::BufferUsages::STORAGE,
            mapped_at_creation: false,
        })
    };
    let (x, y) = (whole(1 << 18), whole(1 << 18));
    let bindings = [&x, &y].map(wgpu::Buffer::as_entire_buffer_binding);
    let error = recorder.prepare(&Map::unary(1 << 16, |x| x.relu()), &bindings).expect_err("too long");
    assert!(matches!(error, Error::BindingLimit { arg: "x0", len_bytes: 0x4_0000, limit_bytes: 0x1_0000, .. }), "{error:?}");
    // The kernel's length matters, not that of the buffer.
    recorder.prepare(&Map::unary(1 << 14, |x| x.relu()), &bindings).expect("the kernel binds 64 KiB of it");
    let x = buffer(&gpu, 4);
    refused(&mut gpu, &Advance, &[x.as_entire_buffer_binding(), x.as_entire_buffer_binding()]);
}

async fn request(limits: wgpu::Limits) -> Result<(wgpu::Device, wgpu::Queue), String> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = instance.request_adapter(&wgpu::RequestAdapterOptions::default()).await.map_err(|error| error.to_string())?;
    let descriptor = wgpu::DeviceDescriptor { required_limits: limits, ..Default::default() };
    adapter.request_device(&descriptor).await.map_err(|error| error.to_string())
}

#[test]
fn one_buffer_read_and_written_is_refused() {
    let Some(mut gpu) = gpu() else { return };
    let x = buffer(&gpu, 64);
    let error = refused(&mut gpu, &Map::unary(4, |x| x.relu()), &[x.as_entire_buffer_binding(), x.as_entire_buffer_binding()]);
    assert_eq!(
        error.to_string(),
        "kernels.map: `x0` and `y0` lie in one buffer, expected another for what is written; wgpu binds no buffer both ways in one dispatch"
    );
}

#[test]
fn a_buffer_that_is_not_storage_is_refused() {
    let Some(mut gpu) = gpu() else { return };
    let copy_only = gpu.device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 16,
        usage: wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    let error = refused(&mut gpu, &Advance, &[copy_only.as_entire_buffer_binding()]);
    assert!(matches!(&error, Error::Binding { label, .. } if label == "kernels.advance"), "{error:?}");
}

/// `y = x²`: a kernel as a reader of the README would write it.
#[derive(Debug)]
struct Square {
    n: usize,
    wgsl: &'static str,
}

const SQUARE: &str = "
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
override SCALE: f32 = 1.0;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) invocation: u32) {
    let i = (group.y * groups.x + group.x) * 64u + invocation;
    if i < arrayLength(&y) {
        y[i] = SCALE * x[i] * x[i];
    }
}
";

impl Kernel for Square {
    fn signature(&self) -> Signature {
        Signature::new("square", [Arg::read("x", DType::F32, self.n), Arg::write("y", DType::F32, self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let square = Dispatch::new("mine.square", self.wgsl, fold_workgroups("square", self.n.div_ceil(64))?);
        Ok(vec![square.constants([("SCALE", 2.0)]).bind_declared(vec![], vec![0], vec![1])])
    }
    fn twin(&self, args: &mut TwinArgs<'_>) {
        let (x, y) = (args.read::<f32>("x"), args.write::<f32>("y"));
        y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x * x);
    }
}

#[test]
fn a_kernel_of_ones_own_runs_on_both() {
    let kernel = Square { n: 100, wgsl: SQUARE };
    let x: Vec<f32> = (0..100).map(|i| i as f32 * 0.5).collect();
    assert_eq!(twin_floats(&kernel, &[words(&x)])[3], 4.5);
    gpu_equals_twin(&kernel, &[words(&x)]);
}

#[track_caller]
fn does_not_compile(wgsl: &'static str, reason: &str) {
    let Some(mut gpu) = gpu() else { return };
    let (x, y) = (buffer(&gpu, 4), buffer(&gpu, 4));
    let bindings = [&x, &y].map(wgpu::Buffer::as_entire_buffer_binding);
    let n_pipelines = gpu.recorder.n_pipelines();
    let error = refused(&mut gpu, &Square { n: 4, wgsl }, &bindings);
    let Error::Pipeline { label, adapter, reason: found } = &error else { panic!("{error:?}") };
    assert_eq!((label.as_str(), adapter), ("mine.square", &gpu.recorder.adapter().name), "what it names");
    assert!(found.contains(reason), "{found}");
    assert_eq!(gpu.recorder.n_pipelines(), n_pipelines, "a pipeline that failed is not kept");
}

#[test]
fn wgsl_that_does_not_compile_is_an_error_that_names_it() {
    does_not_compile("fn main() { nonsense", "expected");
    does_not_compile("@compute @workgroup_size(1) fn other() {}", "main");
    // It does not declare `SCALE`.
    does_not_compile("@compute @workgroup_size(1) fn main() {}", "SCALE");
    // A binding that the kernel does not provide.
    does_not_compile(
        "override SCALE: f32; @group(0) @binding(7) var<storage, read_write> z: array<f32>;
        @compute @workgroup_size(1) fn main() { z[0] = SCALE; }",
        "",
    );
}

/// An argument whose sizes overflow when they are multiplied.
#[derive(Debug)]
struct TooLong;

impl Kernel for TooLong {
    fn signature(&self) -> Signature {
        Signature::new("too_long", [Arg::write("y", DType::F32, [usize::MAX / 2, 3])])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        panic!("asked only after the arguments were checked")
    }
    fn twin(&self, _: &mut TwinArgs<'_>) {}
}

#[test]
fn sizes_whose_product_overflows_are_refused() {
    let Some(mut gpu) = gpu() else { return };
    let y = buffer(&gpu, 4);
    let error = refused(&mut gpu, &TooLong, &[y.as_entire_buffer_binding()]);
    assert_eq!(
        error.to_string(),
        "too_long: y is 18446744073709551615, expected a number of elements that memory can hold; check the sizes of the kernel"
    );
}

/// A dispatch that binds an argument that its kernel does not have.
#[derive(Debug)]
struct Beyond;

impl Kernel for Beyond {
    fn signature(&self) -> Signature {
        Signature::new("beyond", [Arg::write("y", DType::F32, 4)])
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Map::binary(4, |a, b| a + b).dispatches(adapter)
    }
    fn twin(&self, _: &mut TwinArgs<'_>) {}
}

#[test]
fn a_dispatch_of_arguments_that_are_not_there_is_refused() {
    let Some(mut gpu) = gpu() else { return };
    let y = buffer(&gpu, 4);
    let error = refused(&mut gpu, &Beyond, &[y.as_entire_buffer_binding()]);
    assert_eq!(error.to_string(), "kernels.map: a dispatch binds argument 1, expected one of the 1 that `beyond` has");
}

/// Its dispatch binds `y` for writing, and its arguments are `args`.
#[derive(Debug)]
struct Declares {
    args: Vec<Arg>,
}

impl Kernel for Declares {
    fn signature(&self) -> Signature {
        Signature::new("declares", self.args.clone())
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let wgsl = "fn element(i: u32) { if i < arrayLength(&y) { y[i] = 1.0; } }";
        Ok(vec![Dispatch::elementwise("declares", "mine.declares", wgsl, 4)?.bind(&self.args, Binding::NONE, ["y"])?])
    }
    fn twin(&self, args: &mut TwinArgs<'_>) {
        args.write::<f32>("y").fill(1.0);
    }
}

/// A program would take what is written for unchanged, and what is not written for a result.
#[test]
fn dispatches_that_write_other_arguments_than_declared_are_refused() {
    let Some(mut gpu) = gpu() else { return };
    let (y, z) = (buffer(&gpu, 4), buffer(&gpu, 4));
    let bindings = [&y, &z].map(wgpu::Buffer::as_entire_buffer_binding);
    let reads = Declares { args: vec![Arg::read("y", DType::F32, 4_usize)] };
    let error = refused(&mut gpu, &reads, &bindings[..1]).to_string();
    assert!(error.starts_with("mine.declares: a dispatch writes `y`, which the kernel only reads; "), "{error}");
    let writes_more = Declares { args: ["y", "z"].map(|name| Arg::write(name, DType::F32, 4_usize)).into() };
    let error = refused(&mut gpu, &writes_more, &bindings).to_string();
    assert!(error.starts_with("declares: no dispatch writes `z`; "), "{error}");
}

/// A GPU would leave the result as it was, or refuse the whole submission.
#[test]
fn dispatches_of_no_or_too_many_workgroups_are_refused() {
    /// Its dispatch has these workgroups.
    #[derive(Debug)]
    struct Dispatches([u32; 3]);

    impl Kernel for Dispatches {
        fn signature(&self) -> Signature {
            Signature::new("dispatches", [Arg::write("y", DType::F32, 4)])
        }

        fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
            let wgsl = "@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) { y[i] = 1.0; }";
            Ok(vec![Dispatch::new("mine.dispatches", wgsl, self.0).bind(&self.args(), Binding::NONE, ["y"])?])
        }
        fn twin(&self, args: &mut TwinArgs<'_>) {
            args.write::<f32>("y").fill(1.0);
        }
    }

    let Some(mut gpu) = gpu() else { return };
    let y = buffer(&gpu, 4);
    for found in [[0, 1, 1], [1, 1, 70_000]] {
        let error = refused(&mut gpu, &Dispatches(found), &[y.as_entire_buffer_binding()]);
        assert_eq!(error, Error::Workgroups { label: "mine.dispatches", found });
    }
}

#[test]
#[should_panic(expected = "argument `z` is declared as written, and the twin does not write it; the kernel has y, z")]
fn a_twin_that_leaves_out_a_result_is_refused() {
    let kernel = Declares { args: ["y", "z"].map(|name| Arg::write(name, DType::F32, 4_usize)).into() };
    let (declared, mut results) = (kernel.args(), [[0.0_f32; 4]; 2]);
    let mut args = TwinArgs::new(&declared);
    results.iter_mut().for_each(|result| args.push_write(bytemuck::cast_slice_mut(result)));
    kernel.twin(&mut args);
    args.check_written();
}

#[test]
fn ranges_of_a_buffer_are_bound_as_given() {
    let Some(mut gpu) = gpu() else { return };
    let offset = u64::from(gpu.device.limits().min_storage_buffer_offset_alignment);
    let ahead = offset as usize / 4;
    let x = upload(&gpu, &words(&[vec![-5.0; ahead], vec![1.0, -1.0, 2.0, -7.0]].concat()));
    let y = upload(&gpu, &vec![7; ahead + 4]);
    let at = |buffer| wgpu::BufferBinding { buffer, offset, size: None };
    let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let kernel = Map::unary(3, |x| x.relu());
    gpu.recorder.record(&kernel, &[at(&x), at(&y)], &mut encoder).expect("both ranges are long enough");
    gpu.queue.submit([encoder.finish()]);
    let y = download(&gpu, &y, ahead + 4);
    assert_eq!(y[..ahead], vec![7; ahead], "before the range");
    assert_eq!(y[ahead..], [words(&[1.0, 0.0, 2.0]), vec![7]].concat(), "the range and the elements after it");
}

#[test]
fn a_recorded_kernel_is_replayed_in_the_callers_own_pass() {
    let Some(mut gpu) = gpu() else { return };
    let state = upload(&gpu, &[0, 10, 0, 0]);
    let recorded = gpu.recorder.prepare(&Advance, &[state.as_entire_buffer_binding()]).expect("advance");
    assert_eq!(recorded.n_dispatches(), 1);
    let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    for _ in 0..5 {
        recorded.encode(&mut pass);
    }
    drop(pass);
    gpu.queue.submit([encoder.finish()]);
    assert_eq!(download(&gpu, &state, 4), [5, 15, 0, 0]);
}

#[test]
fn pipelines_are_made_once() {
    let Some(gpu) = gpu() else { return };
    let mut recorder = Recorder::new(&gpu.device);
    let x = buffer(&gpu, 64);
    let y = buffer(&gpu, 64);
    let bindings = [&x, &y].map(wgpu::Buffer::as_entire_buffer_binding);
    for n in [1, 2, 63] {
        recorder.prepare(&Map::unary(n, |x| x.relu()), &bindings).expect("relu");
    }
    assert_eq!(recorder.n_pipelines(), 1, "one for three sizes");
    for n in [4, 64] {
        recorder.prepare(&Map::unary(n, |x| x.relu()), &bindings).expect("relu");
    }
    assert_eq!(recorder.n_pipelines(), 2, "another for groups of four");
    recorder.prepare(&Map::unary(1, |x| x.tanh()), &bindings).expect("tanh");
    assert_eq!(recorder.n_pipelines(), 3, "another for another function");
}
