//! Kernels in an existing wgpu program with its own instance, adapter, device, queue and encoder.
//!
//! `cargo run --release --example caller_device`
//!
//! Between two passes of the program, `y = tanh(x Wᵀ + bias)` is recorded as two kernels, a product and an activation. Only the
//! program itself submits, waits and reads back.

use std::process::ExitCode;

use anyhow::Context;
use brisk_examples::{command_line, print};
use brisk_kernels::gpu::Recorder;
use brisk_kernels::{Access, Activation, Epilogue, Kernel, Map, Matmul, Transpose, TwinArgs, bytemuck, wgpu};
use clap::Parser;

/// Rows of the batch, features in, features out.
const N_ROWS: usize = 32;
const N_IN: usize = 20;
const N_OUT: usize = 12;

/// The program's own pass, which doubles the values of a buffer.
const DOUBLE: &str = "
@group(0) @binding(0) var<storage, read_write> data: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&data) {
        data[id.x] *= 2.0;
    }
}
";

/// Records two kernels of brisk between the passes of a wgpu program, and compares the results with those of the CPU
#[derive(Debug, Parser)]
#[command(name = "caller_device")]
struct Options {}

fn main() -> ExitCode {
    command_line::run(|Options {}| run().map(|()| ExitCode::SUCCESS))
}

fn run() -> anyhow::Result<()> {
    let (adapter, device, queue) = pollster::block_on(open())?;

    // The program's data, in its own buffers.
    let x: Vec<f32> = (0..N_ROWS * N_IN).map(|i| (i as f32 * 0.37).sin()).collect();
    let weights: Vec<f32> = (0..N_OUT * N_IN).map(|i| (i as f32 * 0.11).cos() / N_IN as f32).collect();
    let bias = vec![0.25_f32; N_OUT];
    let [x_gpu, weights_gpu, bias_gpu] = [&x, &weights, &bias].map(|data| upload(&device, &queue, data));
    let [sums, y] = [(); 2].map(|()| empty(&device, N_ROWS * N_OUT));

    // The two kernels are plain structs.
    let product = Matmul {
        n_batch: 1,
        m: N_ROWS,
        n: N_OUT,
        k: N_IN,
        transpose: Transpose::B,
        epilogue: Epilogue::bias(&Activation::identity()),
    };
    let activate = Map::unary(N_ROWS * N_OUT, |x| x.tanh());
    // After its other arguments, a kernel takes as much scratch as its sizes need.
    let scratch: Vec<_> = scratch_lens(&product).map(|len| empty(&device, len)).collect();

    let double = double_pipeline(&device);
    let mut recorder = Recorder::new(&device);
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("frame") });
    own_pass(&device, &double, &x_gpu, &mut encoder);
    let buffers = [&x_gpu, &weights_gpu, &bias_gpu, &sums].into_iter().chain(&scratch);
    recorder.record(&product, &buffers.map(wgpu::Buffer::as_entire_buffer_binding).collect::<Vec<_>>(), &mut encoder)?;
    let buffers = [&sums, &y].map(wgpu::Buffer::as_entire_buffer_binding);
    recorder.record(&activate, &buffers, &mut encoder)?;
    own_pass(&device, &double, &y, &mut encoder);
    queue.submit([encoder.finish()]);
    let found = download(&device, &queue, &y)?;

    // The same on the CPU, with the passes of the program before and after.
    let doubled: Vec<f32> = x.iter().map(|x| 2.0 * x).collect();
    let [mut sums, mut expected] = [(); 2].map(|()| vec![0.0; N_ROWS * N_OUT]);
    twin(&product, &[&doubled, &weights, &bias], &mut sums);
    twin(&activate, &[&sums], &mut expected);
    expected.iter_mut().for_each(|y| *y *= 2.0);

    let off = found.iter().zip(&expected).map(|(found, expected)| (found - expected).abs()).fold(0.0, f32::max);
    anyhow::ensure!(off < 1e-5, "the results of the GPU are off by {off}, expected at most 1e-5");
    print::result(format_args!("adapter   {adapter}\ny[0, ..4] {:?}", &found[..4]))?;
    print::result(format_args!("check     {} results equal the twins' within {off:.1e}", found.len()))
}

async fn open() -> anyhow::Result<(String, wgpu::Device, wgpu::Queue)> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let adapter = instance
        .request_adapter(&wgpu::RequestAdapterOptions::default())
        .await
        .context("wgpu finds no adapter; install a Vulkan, Metal or DX12 driver, or Mesa's lavapipe, which needs no GPU")?;
    let (device, queue) = adapter.request_device(&wgpu::DeviceDescriptor::default()).await?;
    Ok((adapter.get_info().name, device, queue))
}

fn double_pipeline(device: &wgpu::Device) -> wgpu::ComputePipeline {
    let source = wgpu::ShaderSource::Wgsl(DOUBLE.into());
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some("double"), source });
    device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: Some("double"),
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    })
}

fn own_pass(device: &wgpu::Device, double: &wgpu::ComputePipeline, data: &wgpu::Buffer, encoder: &mut wgpu::CommandEncoder) {
    let bind_group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: Some("double"),
        layout: &double.get_bind_group_layout(0),
        entries: &[wgpu::BindGroupEntry { binding: 0, resource: data.as_entire_binding() }],
    });
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some("double"), timestamp_writes: None });
    pass.set_pipeline(double);
    pass.set_bind_group(0, &bind_group, &[]);
    pass.dispatch_workgroups((data.size() / 4).div_ceil(64) as u32, 1, 1);
}

fn empty(device: &wgpu::Device, len: usize) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: 4 * len as u64,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}

fn upload(device: &wgpu::Device, queue: &wgpu::Queue, data: &[f32]) -> wgpu::Buffer {
    let buffer = empty(device, data.len());
    queue.write_buffer(&buffer, 0, bytemuck::cast_slice(data));
    buffer
}

fn download(device: &wgpu::Device, queue: &wgpu::Queue, buffer: &wgpu::Buffer) -> anyhow::Result<Vec<f32>> {
    let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
    let descriptor = wgpu::BufferDescriptor { label: None, size: buffer.size(), usage, mapped_at_creation: false };
    let staging = device.create_buffer(&descriptor);
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, buffer.size());
    queue.submit([encoder.finish()]);
    let (sender, receiver) = std::sync::mpsc::channel();
    staging.slice(..).map_async(wgpu::MapMode::Read, move |mapped| drop(sender.send(mapped)));
    device.poll(wgpu::PollType::wait_indefinitely())?;
    receiver.recv()??;
    Ok(bytemuck::pod_collect_to_vec(&staging.slice(..).get_mapped_range()?))
}

/// The numbers of f32 in the scratch buffers of a kernel.
fn scratch_lens(kernel: &dyn Kernel) -> impl Iterator<Item = usize> {
    kernel.args().into_iter().filter(|arg| arg.access == Access::Scratch).map(|arg| arg.len)
}

/// Runs a kernel's twin: its inputs, then its result and scratch.
fn twin(kernel: &dyn Kernel, inputs: &[&[f32]], output: &mut [f32]) {
    let declared = kernel.args();
    let mut scratch: Vec<_> = scratch_lens(kernel).map(|len| vec![0.0_f32; len]).collect();
    let mut args = TwinArgs::new(&declared);
    inputs.iter().for_each(|input| args.push_read(bytemuck::cast_slice(input)));
    args.push_write(bytemuck::cast_slice_mut(output));
    scratch.iter_mut().for_each(|scratch| args.push_write(bytemuck::cast_slice_mut(scratch)));
    kernel.twin(&mut args);
}
