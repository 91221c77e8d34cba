//! A driver's pipeline cache, kept in a file between processes. All of this crate's `unsafe` is here.
#![expect(unsafe_code, reason = "a driver uses the bytes of a cache without checking them")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use brisk_atomic_file::AtomicFile;
use brisk_kernels::wgpu;

use crate::memory::lock;

/// The state of a device's [`pipeline_cache`](crate::DeviceBuilder::pipeline_cache). A cache that cannot be read or written costs
/// time, and is not an error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PipelineCache {
    /// The file: one for each adapter.
    pub path: PathBuf,
    /// Bytes that were read from it and given to the driver; 0 if there was no file.
    pub loaded_bytes: usize,
    /// Bytes of the last write; 0 if nothing has been written yet.
    pub saved_bytes: usize,
    /// Why the file was ignored when the device was opened: it is damaged, or cannot be read.
    pub not_loaded: Option<String>,
    /// Why the last write failed.
    pub not_saved: Option<String>,
}

/// The cache of one device and its file.
#[derive(Debug)]
pub(crate) struct CacheFile {
    pub(crate) cache: wgpu::PipelineCache,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    public: PipelineCache,
    /// The number of pipelines when the file was last written.
    n_pipelines: usize,
    sum: u32,
}

/// A file is the driver's data followed by their CRC-32.
const SUM_BYTES: usize = 4;

impl CacheFile {
    /// `None` if the adapter has no pipeline cache.
    pub(crate) fn open(folder: &Path, device: &wgpu::Device) -> Option<Self> {
        let key = wgpu::util::pipeline_cache_key(&device.adapter_info())?;
        if !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let path = folder.join(format!("{key}.bin"));
        let (data, not_loaded) = match read(&path) {
            Ok(data) => (data, None),
            Err(reason) => (None, Some(reason)),
        };
        let descriptor = wgpu::PipelineCacheDescriptor { label: Some("brisk"), data: data.as_deref(), fallback: true };
        // SAFETY: the data are what `PipelineCache::get_data` returned, as their checksum shows, unless both were forged. The
        // caller chose the folder, and is told that any program that can write there can run code in this process. wgpu compares
        // adapter and driver.
        let cache = unsafe { device.create_pipeline_cache(&descriptor) };
        let (loaded_bytes, sum) = data.as_ref().map_or((0, 0), |data| (data.len(), crc32fast::hash(data)));
        let public = PipelineCache { path, loaded_bytes, saved_bytes: 0, not_loaded, not_saved: None };
        Some(Self { cache, state: Mutex::new(State { public, n_pipelines: 0, sum }) })
    }

    pub(crate) fn state(&self) -> PipelineCache {
        lock(&self.state).public.clone()
    }

    /// Writes the file if pipelines were created since it was last written and the driver has new data.
    pub(crate) fn save(&self, n_pipelines: usize) {
        let mut state = lock(&self.state);
        if state.n_pipelines == n_pipelines {
            return;
        }
        state.n_pipelines = n_pipelines;
        let Some(data) = self.cache.get_data() else { return };
        let sum = crc32fast::hash(&data);
        if sum == state.sum {
            return;
        }
        match write(&state.public.path, &data, sum) {
            Ok(()) => {
                state.sum = sum;
                (state.public.saved_bytes, state.public.not_saved) = (data.len(), None);
            }
            Err(error) => state.public.not_saved = Some(error.to_string()),
        }
    }
}

/// Reads the data; `None` if there is no file yet.
fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let mut data = match fs::read(path) {
        Ok(data) => data,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let sum = data.last_chunk::<SUM_BYTES>().map(|sum| u32::from_le_bytes(*sum));
    data.truncate(data.len().saturating_sub(SUM_BYTES));
    if sum == Some(crc32fast::hash(&data)) {
        Ok(Some(data))
    } else {
        Err("its checksum does not match, it will be written again".to_owned())
    }
}

/// Replaces the file as a whole, so that no process reads a partial cache. If several processes write, the last one wins.
fn write(path: &Path, data: &[u8], sum: u32) -> std::io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let mut file = AtomicFile::create(path)?;
    file.write_all(data)?;
    file.write_all(&sum.to_le_bytes())?;
    Ok(file.publish()?)
}
