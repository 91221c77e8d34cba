//! Prints the WGSL modules of the kernels, or writes every pipeline in the languages of the backends: `cargo xtask wgsl --help`.

#![expect(clippy::print_stdout, reason = "printing is what a command-line program does")]

#[path = "../tests/it/map_samples.rs"]
mod map_samples;
#[path = "../tests/it/pipeline.rs"]
mod pipeline;
#[path = "../tests/it/rules.rs"]
mod rules;
#[path = "../tests/it/samples.rs"]
mod samples;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

use brisk_kernels::*;
use naga::back::pipeline_constants::process_overrides;
use naga::{AddressSpace, CooperativeSize, Scalar, ShaderStage};

use pipeline::{Pipeline, Vulkan, parse};
use samples::{adapters, dispatches, every_sample};

const USAGE: &str = "usage: wgsl NAME | wgsl --dump FOLDER";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match &args[..] {
        [dump, folder] if dump == "--dump" => write_all(Path::new(folder)).map(|n| println!("{n} pipelines in {folder}")),
        [name] if !name.starts_with('-') => print_modules(name),
        _ => Err(io::Error::other(USAGE)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints each different module whose label contains `name`, such as `kernels.matmul.tiled`.
fn print_modules(name: &str) -> io::Result<()> {
    let mut labels = BTreeSet::new();
    let mut printed = BTreeSet::new();
    for adapter in &adapters() {
        for kernel in every_sample() {
            for dispatch in dispatches(&*kernel, adapter) {
                labels.insert(dispatch.label);
                let source = dispatch.wgsl.source();
                if dispatch.label.contains(name) && printed.insert(source.clone()) {
                    let parts: Vec<&str> = dispatch.wgsl.parts().iter().map(|part| part.name()).collect();
                    println!("// {}: {}\n\n{source}", dispatch.label, parts.join(", "));
                }
            }
        }
    }
    if printed.is_empty() {
        let labels: Vec<&str> = labels.into_iter().collect();
        return Err(io::Error::other(format!("no module is called `{name}`; there are {}", labels.join(", "))));
    }
    Ok(())
}

/// Writes each pipeline as SPIR-V, HLSL, MSL and WGSL, and an index of them, into `folder`, and prints how many there are.
fn write_all(folder: &Path) -> io::Result<usize> {
    fs::create_dir_all(folder)?;
    let mut dump = Dump { folder, index: String::new(), seen: BTreeSet::new(), n: 0 };
    dump.index.push_str("id\tset\tkernel\tadapter\tlabel\tentry\tconstants\twg\twg_bytes\tcoop\tf16\tint64\tsubgroups\n");
    for (what, kernel, has_f16) in real_kernels() {
        for (adapter_name, adapter) in &real_adapters() {
            // The adapters differ only in how they multiply f16 values.
            if has_f16 || *adapter_name == "plain" {
                dump.add("real", &what, &*kernel, adapter_name, adapter)?;
            }
        }
    }
    for adapter in &adapters() {
        let coop = adapter.coop.map_or(String::new(), |shape| format!("+{shape:?}"));
        let name = format!("{:?}{}{coop}", adapter.kind, if adapter.f16_accumulation { "+f16-sums" } else { "" });
        for kernel in every_sample() {
            dump.add("samples", kernel.name(), &*kernel, &name, adapter)?;
        }
    }
    fs::write(folder.join("index.tsv"), &dump.index)?;
    Ok(dump.n)
}

/// The identity of a pipeline: a kernel of a realistic size, or nothing; then source, entry point, and constants as bits.
type Key = (String, String, &'static str, Vec<(&'static str, u64)>);

struct Dump<'a> {
    folder: &'a Path,
    index: String,
    seen: BTreeSet<Key>,
    n: usize,
}

impl Dump<'_> {
    fn add(&mut self, set: &str, what: &str, kernel: &dyn Kernel, adapter_name: &str, adapter: &Adapter) -> io::Result<()> {
        for dispatch in dispatches(kernel, adapter) {
            let source = dispatch.wgsl.source();
            let bits = dispatch.constants.iter().map(|&(name, value)| (name, value.to_bits())).collect();
            // Kernels of realistic sizes have one line each; samples are distinguished only by their module.
            let of = if set == "real" { format!("{what} {adapter_name}") } else { String::new() };
            if self.seen.insert((of, source.clone(), dispatch.entry, bits)) {
                self.write(&format!("{set}\t{what}\t{adapter_name}"), &dispatch, &source, adapter)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, what: &str, dispatch: &Dispatch, source: &str, adapter: &Adapter) -> io::Result<()> {
        let (module, info) = parse(dispatch.label, source, adapter.features);
        let constants = dispatch.constants.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        let (module, info) = process_overrides(&module, &info, Some((ShaderStage::Compute, dispatch.entry)), &constants)
            .map_err(io::Error::other)?;
        let pipeline = Pipeline { module: &module, info: &info, entry: dispatch.entry, features: adapter.features };
        let coop = match pipeline.coop() {
            Some(CooperativeSize::Sixteen) => 16,
            Some(CooperativeSize::Eight) => 8,
            None => 0,
        };
        let id = format!("{:04}", self.n);
        let file = |extension: &str| self.folder.join(format!("{id}.{extension}"));
        let failed = |error: Box<dyn std::error::Error>| io::Error::other(format!("{}: {error}", dispatch.label));
        let words = pipeline.to_spirv(Vulkan::Current).map_err(|error| failed(error.into()))?;
        fs::write(file("spv"), words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())?;
        fs::write(file("wgsl"), source)?;
        if coop != 16 {
            fs::write(file("metal"), pipeline.to_msl().map_err(failed)?)?;
        }
        if coop == 0 {
            fs::write(file("hlsl"), pipeline.to_hlsl().map_err(failed)?)?;
        }
        let in_groups = module.global_variables.iter().filter(|(_, of)| of.space == AddressSpace::WorkGroup);
        let n_bytes: u32 = in_groups.map(|(_, of)| module.types[of.ty].inner.size(module.to_ctx())).sum();
        let is_f16 = module.types.iter().any(|(_, of)| of.inner.scalar() == Some(Scalar::F16));
        let has = |feature| u8::from(adapter.features.contains(feature));
        let constants: Vec<String> = dispatch.constants.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let _ = writeln!(
            self.index,
            "{id}\t{what}\t{}\t{}\t{}\t{}\t{n_bytes}\t{coop}\t{}\t{}\t{}",
            dispatch.label,
            dispatch.entry,
            constants.join(","),
            module.entry_points[0].workgroup_size.map(|size| size.to_string()).join("x"),
            u8::from(is_f16),
            has(wgpu::Features::SHADER_INT64),
            has(wgpu::Features::SUBGROUP),
        );
        self.n += 1;
        Ok(())
    }
}

/// Adapters as drivers describe them, which differ in how they multiply f16 values.
fn real_adapters() -> [(&'static str, Adapter); 6] {
    let plain = wgpu::Features::SUBGROUP | wgpu::Features::SHADER_F16 | wgpu::Features::SHADER_INT64;
    let adapter = |features, coop, f16_accumulation, subgroups: [u32; 2]| {
        Adapter::new("real", AdapterKind::Hardware)
            .with_features(features)
            .with_limits(wgpu::Limits { max_compute_workgroup_storage_size: 32 << 10, ..wgpu::Limits::default() })
            .with_subgroups(subgroups)
            .with_coop(coop)
            .with_f16_accumulation(f16_accumulation)
    };
    let coop = |shape, subgroups| adapter(plain | CoopShape::FEATURES, Some(shape), false, subgroups);
    [
        ("plain", adapter(plain, None, false, [32, 32])),
        ("f16-sums", adapter(plain, None, true, [32, 32])),
        ("coop16-32", coop(CoopShape::Sixteen, [32, 32])),
        ("coop16-32-64", coop(CoopShape::Sixteen, [32, 64])),
        ("coop16-8-32", coop(CoopShape::Sixteen, [8, 32])),
        ("coop8-32", coop(CoopShape::Eight, [32, 32])),
    ]
}

/// Products and convolutions of sizes that occur in networks, and whether they are stored in f16.
fn real_kernels() -> Vec<(String, Box<dyn Kernel>, bool)> {
    let relu = Activation::relu();
    let mut all = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        let mut kernels: BTreeMap<String, Box<dyn Kernel>> = BTreeMap::new();
        for (size, tag) in [(4096, "large"), (1024, "medium"), (252, "small")] {
            for (transpose, t) in [(Transpose::None, "nn"), (Transpose::B, "nt"), (Transpose::A, "tn")] {
                let matmul = Matmul { n_batch: 1, m: size, n: size, k: size, transpose, epilogue: Epilogue::none() };
                kernels.insert(format!("matmul.{tag}.{t}"), Box::new(matmul.clone()));
                if transpose == Transpose::B {
                    let matmul = Matmul { epilogue: Epilogue::bias(&relu), ..matmul };
                    kernels.insert(format!("matmul.{tag}.{t}.bias_relu"), Box::new(matmul));
                }
            }
        }
        let odd = || Matmul { n_batch: 1, m: 1023, n: 1023, k: 1023, transpose: Transpose::None, epilogue: Epilogue::none() };
        kernels.insert("matmul.any.nn".to_owned(), Box::new(odd()));
        kernels.insert(
            "matmul.split_k.tn".to_owned(),
            Box::new(Matmul { m: 128, n: 128, k: 8192, transpose: Transpose::A, ..odd() }),
        );
        kernels.insert(
            "batched.nt".to_owned(),
            Box::new(Matmul { n_batch: 96, m: 256, n: 256, k: 64, transpose: Transpose::B, epilogue: Epilogue::none() }),
        );
        for (n_images, side, n_channels, n_out) in [(64, 56, 64, 64), (64, 14, 256, 256), (64, 224, 3, 64)] {
            let x = Images { n_images, height: side, width: side, n_channels };
            let shape = ConvShape::dense(x, n_out, Window::square(3, 1));
            let tag = format!("{side}x{side}x{n_channels}");
            kernels.insert(format!("conv2d.{tag}"), Box::new(Conv2d { shape, epilogue: Epilogue::none() }));
            kernels.insert(format!("conv2d.{tag}.bias_relu"), Box::new(Conv2d { shape, epilogue: Epilogue::bias(&relu) }));
            kernels.insert(format!("conv2d_grad_input.{tag}"), Box::new(Conv2dGradInput { shape, epilogue: Epilogue::none() }));
            kernels.insert(format!("conv2d_grad_weight.{tag}"), Box::new(Conv2dGradWeight { shape }));
        }
        let x = Images { n_images: 64, height: 56, width: 56, n_channels: 64 };
        let shape = ConvShape { x, n_out: 64, window: Window::square(3, 1), dilation: [1, 1], n_groups: 64 };
        let epilogue = Epilogue::none;
        kernels.insert("conv2d.depthwise".to_owned(), Box::new(Conv2d { shape, epilogue: epilogue() }));
        kernels.insert("conv2d_grad_input.depthwise".to_owned(), Box::new(Conv2dGradInput { shape, epilogue: epilogue() }));
        kernels.insert("conv2d_grad_weight.depthwise".to_owned(), Box::new(Conv2dGradWeight { shape }));
        for (what, kernel) in kernels {
            let given = kernel.args().into_iter().filter(|arg| arg.access != Access::Scratch);
            let dtypes: Vec<DType> = given.map(|arg| if arg.dtype == DType::F32 { dtype } else { arg.dtype }).collect();
            let kernel = stored(kernel, &dtypes).unwrap_or_else(|error| panic!("{error}"));
            all.push((format!("{what}.{dtype:?}").to_lowercase(), kernel, dtype == DType::F16));
        }
    }
    all
}
