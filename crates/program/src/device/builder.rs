#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use brisk_kernels::{MatmulFamily, wgpu};

use crate::cpu::CpuDevice;
use crate::device::Device;
use crate::device::adapters::open_adapters;
use crate::device::back_off::{Attempts, with_back_off};
use crate::device::select::Selection;
use crate::device_info::{DeviceInfo, DeviceKind};
use crate::error::Error;
use crate::gpu::device::{GpuDevice, Opened, request_device};

/// Settings of a device before it is opened.
#[derive(Debug, Clone, Default)]
pub struct DeviceBuilder {
    selection: Selection,
    n_threads: usize,
    max_binding_bytes: Option<u64>,
    memory_limit: Option<usize>,
    n_attempts: Attempts,
    pipeline_cache: Option<PathBuf>,
    f16_accumulation: bool,
    without_coop: bool,
    matmul_family: Option<MatmulFamily>,
}

impl DeviceBuilder {
    /// Which device. The default is [`Selection::Best`].
    pub fn selection(self, selection: Selection) -> Self {
        Self { selection, ..self }
    }

    /// Threads of the CPU executor; 0, the default, uses one for each core. Results do not depend on it.
    pub fn threads(self, n_threads: usize) -> Self {
        Self { n_threads, ..self }
    }

    /// Lowers the maximum size of one kernel argument, as if the adapter could not bind more: tables are then held in more
    /// windows. For tests, and for drivers that report more than they support. [`Device::compile`] splits or refuses larger
    /// kernels, also on the CPU.
    pub fn max_binding_bytes(self, max_bytes: usize) -> Self {
        Self { max_binding_bytes: Some(max_bytes as u64), ..self }
    }

    /// Maximum bytes of programs and persistent buffers on the device, so that several processes can share it. A larger program
    /// or buffer returns [`Error::MemoryLimit`] before anything is allocated. Without a limit the driver's own budget applies.
    ///
    /// # Units
    /// Bytes as [`Plan`](crate::Plan) counts them: constants of kernels and staging memory come on top.
    ///
    /// # Examples
    /// ```
    /// use brisk_program::{Device, Error, Persistent, Selection, kernels::DType};
    ///
    /// let device = Device::builder().selection(Selection::Cpu).memory_limit(1 << 20).open()?;
    /// let large = Persistent::new("large", DType::F32, 1 << 20);
    /// let refused = device.read::<f32>(&large);
    /// assert!(matches!(refused, Err(Error::MemoryLimit { needed_bytes: 4_194_304, limit_bytes: 1_048_576, .. })));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn memory_limit(self, max_bytes: usize) -> Self {
        Self { memory_limit: Some(max_bytes), ..self }
    }

    /// The number of attempts to open an adapter before an error is returned, with pauses of 50 ms, 100 ms, 200 ms and so on in
    /// between: other processes may keep it busy temporarily. The default is 5, which takes three quarters of a second to fail; 0
    /// counts as 1. [`DeviceInfo::failed_attempts`] lists the errors.
    pub fn open_attempts(self, n_attempts: u32) -> Self {
        Self { n_attempts: Attempts(n_attempts.max(1)), ..self }
    }

    /// A folder for the driver's pipeline cache, which is kept from one process to the next, with one file per adapter; it is
    /// created if it does not exist. [`Device::compile`] writes the file after it has created pipelines. Only Vulkan adapters
    /// have such a cache, and most desktop drivers also keep their own; on other adapters the folder is not used.
    /// [`Device::pipeline_cache`] reports the state of the cache: a damaged file is ignored and written again.
    ///
    /// The driver runs the code that it finds in the file, so other users must not be able to write to the folder.
    pub fn pipeline_cache(self, folder: impl Into<PathBuf>) -> Self {
        Self { pipeline_cache: Some(folder.into()), ..self }
    }

    /// Allows products of f16 operands to be accumulated in f16, 16 at a time, with only those partial sums added in f32. It is
    /// meant for hardware with `SHADER_F16` but without tensor cores, which may do two such multiply-adds in the time of one in
    /// f32. It is off by default, since results are less accurate: the error is up to about `16 * 2^-11` of the sum of the
    /// products' magnitudes. Results are infinite where the sum of 16 consecutive products exceeds 65504, so a loss scale settles
    /// lower, and products below `2^-14`, as in gradients, lose bits or vanish.
    ///
    /// Where it is not possible (on the CPU, on software adapters, without `SHADER_F16`, and on tensor cores), sums stay in f32
    /// without an error: [`Adapter::f16_sum_len`](brisk_kernels::Adapter::f16_sum_len) of the device's
    /// [`adapter`](Device::adapter) says what it does. The speedup has not been measured on hardware yet.
    ///
    /// # Reference
    /// `torch.backends.cuda.matmul.allow_fp16_accumulation`, which is off by default too.
    ///
    /// # Examples
    /// ```
    /// use brisk_program::{Device, Selection};
    ///
    /// let device = Device::builder().selection(Selection::Best).allow_f16_accumulation().open()?;
    /// let sum_len = device.adapter().and_then(|adapter| adapter.f16_sum_len());
    /// assert!(sum_len.is_none_or(|n| n == 16), "all sums in f32, or those of 16 products in f16");
    /// # Ok::<(), brisk_program::Error>(())
    /// ```
    pub fn allow_f16_accumulation(self) -> Self {
        Self { f16_accumulation: true, ..self }
    }

    /// Disables the cooperative matrices of the adapter (tensor cores).
    ///
    /// By default, products and convolutions of operands stored in f16, as under autocast, run on them if the adapter lists
    /// matrices of f16 with sums in f32 and a self-check when the device is opened finds that they compute correctly. Otherwise
    /// they are not used; [`DeviceInfo::coop_refused`] says why a self-check failed.
    pub fn without_cooperative_matrices(self) -> Self {
        Self { without_coop: true, ..self }
    }

    /// Computes all matrix products with one family of kernels, to compare them; by default it depends on adapter and shapes.
    ///
    /// If this is not called, the environment variable `BRISK_FAMILY` does the same with `direct`, `tiled` or `coop`. The CPU
    /// executor has no families.
    ///
    /// # Examples
    /// ```
    /// use brisk_program::kernels::MatmulFamily;
    /// use brisk_program::{Device, Selection};
    ///
    /// let device = Device::builder().selection(Selection::Best).matmul_family(MatmulFamily::Tiled).open()?;
    /// assert!(device.adapter().is_none_or(|adapter| adapter.matmul_family == Some(MatmulFamily::Tiled)));
    /// # Ok::<(), brisk_program::Error>(())
    /// ```
    pub fn matmul_family(self, family: MatmulFamily) -> Self {
        Self { matmul_family: Some(family), ..self }
    }

    /// Checks that the selected device exists, without opening it.
    ///
    /// # Errors
    /// [`Error::NoDevice`], with a list of the available devices.
    ///
    /// # Examples
    /// ```
    /// use brisk_program::{Device, Error, Selection};
    ///
    /// Device::builder().selection(Selection::Cpu).check()?;
    /// let missing = Device::builder().selection(Selection::Name("no such adapter".to_owned()));
    /// assert!(matches!(missing.check(), Err(Error::NoDevice { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn check(&self) -> Result<(), Error> {
        match &self.selection {
            Selection::Best | Selection::Cpu => Ok(()),
            asked => find(asked, &open_adapters()).map(drop),
        }
    }

    /// Opens the device.
    ///
    /// # Errors
    /// [`Error::NoDevice`], with a list of the available devices; [`Error::Open`]; an error of the kernels for a family that is
    /// unknown or that the device cannot run.
    pub fn open(mut self) -> Result<Device, Error> {
        if self.matmul_family.is_none() {
            self.matmul_family = family_from_env()?;
        }
        match &self.selection {
            Selection::Cpu => self.open_cpu(None),
            Selection::Best => self.open_best(open_adapters(), |info, adapter| self.open_gpu(info, adapter)),
            asked => {
                let mut adapters = open_adapters();
                let (info, adapter) = adapters.swap_remove(find(asked, &adapters)?);
                self.open_gpu(info, &adapter)
            }
        }
    }

    /// The first hardware GPU that opens, else the CPU. Its information says why the GPUs before it were not used.
    fn open_best<A>(
        &self,
        adapters: Vec<(DeviceInfo, A)>,
        open: impl Fn(DeviceInfo, &A) -> Result<Device, Error>,
    ) -> Result<Device, Error> {
        let mut fallback = None;
        for (info, adapter) in adapters.into_iter().filter(|(info, _)| info.kind == DeviceKind::Gpu) {
            match open(DeviceInfo { fallback: fallback.clone(), ..info }, &adapter) {
                Ok(device) => return Ok(device),
                Err(error) => fallback = fallback.or(Some(error.to_string())),
            }
        }
        self.open_cpu(fallback)
    }

    fn open_cpu(&self, fallback: Option<String>) -> Result<Device, Error> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let n_threads = if self.n_threads == 0 { cores } else { self.n_threads };
        let name = format!("cpu, {n_threads} threads");
        let cpu = Arc::new(CpuDevice::new(name.clone(), n_threads, self.memory_limit)?);
        let info = DeviceInfo { fallback, ..DeviceInfo::new(name, DeviceKind::Cpu, "rust".to_owned()) };
        Ok(Device::new(info, cpu, None, self.lowered(u64::MAX)))
    }

    fn open_gpu(&self, info: DeviceInfo, adapter: &wgpu::Adapter) -> Result<Device, Error> {
        let (mut opened, mut failed_attempts) = self.request(&info, adapter, !self.without_coop)?;
        let coop_refused = opened.check_coop().err();
        if coop_refused.is_some() {
            // The device may be lost, so it is opened again.
            (opened, failed_attempts) = self.request(&info, adapter, false)?;
        }
        opened.f16_accumulation = self.f16_accumulation;
        let cache = self.pipeline_cache.as_deref();
        let gpu = Arc::new(GpuDevice::new(info.name.clone(), opened, self.matmul_family, self.memory_limit, cache)?);
        let max_binding_bytes = self.lowered(gpu.max_binding_bytes());
        let info = DeviceInfo { failed_attempts, coop_refused, ..info };
        Ok(Device::new(info, gpu.clone(), Some(gpu), max_binding_bytes))
    }

    /// The opened adapter, and the driver's errors at failed attempts.
    fn request(&self, info: &DeviceInfo, adapter: &wgpu::Adapter, uses_coop: bool) -> Result<(Opened, Vec<String>), Error> {
        let attempt = || request_device(adapter, uses_coop);
        let (opened, failed_attempts) = with_back_off(self.n_attempts, std::thread::sleep, attempt);
        match opened {
            Ok(opened) => Ok((opened, failed_attempts)),
            Err(error) => {
                let reason = format!("{error}, at the last of {} attempts", failed_attempts.len() + 1);
                Err(Error::Open { adapter: info.name.clone(), reason })
            }
        }
    }

    fn lowered(&self, max_binding_bytes: u64) -> u64 {
        self.max_binding_bytes.map_or(max_binding_bytes, |lowered| lowered.min(max_binding_bytes))
    }
}

fn family_from_env() -> Result<Option<MatmulFamily>, Error> {
    match std::env::var_os("BRISK_FAMILY") {
        Some(word) if !word.is_empty() => {
            let family = word.to_string_lossy().parse();
            family.map(Some).map_err(|reason| Error::Environment { variable: "BRISK_FAMILY", reason })
        }
        _ => Ok(None),
    }
}

/// The index of the first adapter that matches `asked`.
fn find<A>(asked: &Selection, adapters: &[(DeviceInfo, A)]) -> Result<usize, Error> {
    let index = adapters.iter().enumerate().position(|(i, (info, _))| matches(asked, i, info));
    index.ok_or_else(|| Error::NoDevice { asked: asked.to_string(), available: available(adapters) })
}

fn matches(asked: &Selection, index: usize, info: &DeviceInfo) -> bool {
    match asked {
        Selection::Gpu => info.kind == DeviceKind::Gpu,
        Selection::Software => info.kind == DeviceKind::Software,
        Selection::Index(wanted) => *wanted == index,
        Selection::Name(part) => info.name.to_lowercase().contains(&part.to_lowercase()),
        Selection::Best | Selection::Cpu => false,
    }
}

fn available<A>(adapters: &[(DeviceInfo, A)]) -> String {
    let adapters = adapters.iter().enumerate().map(|(i, (info, _))| format!("{i}: {info}"));
    adapters.chain(std::iter::once("cpu".to_owned())).collect::<Vec<_>>().join("; ")
}
