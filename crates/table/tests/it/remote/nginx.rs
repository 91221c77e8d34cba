//! Tables on a web server that others wrote.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use brisk_loader::{Batching, Loader, RowBuffers, RowSelection, RowSource as _};
use brisk_table::{CacheFolder, ReadAhead, Remote, RemoteError, RemoteOptions, StreamedTable};

/// Serves the files of a folder.
struct Nginx {
    process: Child,
    address: String,
    folder: tempfile::TempDir,
}

impl Nginx {
    /// `None` if it is not installed.
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let address = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap().to_string();
        let at = folder.path().display();
        let temporary: String =
            ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|kind| format!("{kind}_temp_path {at}/{kind};\n")).concat();
        let settings = format!(
            "daemon off;\nmaster_process off;\npid {at}/pid;\nerror_log {at}/errors;\nevents {{}}\n\
             http {{\naccess_log off;\n{temporary}server {{ listen {address}; root {at}; }}\n}}\n"
        );
        fs::write(folder.path().join("settings"), settings).unwrap();
        let errors = folder.path().join("errors");
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder.path()).arg("-c").arg(folder.path().join("settings")).arg("-e").arg(&errors);
        let mut process = match command.spawn() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            started => started.unwrap(),
        };
        let since = Instant::now();
        while TcpStream::connect(&address).is_err() {
            let said = || fs::read_to_string(&errors).unwrap_or_default();
            assert!(process.try_wait().unwrap().is_none() && since.elapsed() < Duration::from_secs(20), "{}", said());
            thread::sleep(Duration::from_millis(5));
        }
        Some(Self { process, address, folder })
    }

    /// Writes a file, which takes the place of another of that name.
    fn put(&self, name: &str, bytes: &[u8]) {
        let [new, path] = ["new", name].map(|name| self.folder.path().join(name));
        fs::write(&new, bytes).unwrap();
        fs::rename(new, path).unwrap();
    }

    fn open(&self, name: &str) -> StreamedTable {
        let remote = Remote::new(RemoteOptions { memory_bytes: 0, ..super::options(CacheFolder::Off) }).unwrap();
        StreamedTable::open_url(&format!("http://{}/{name}", self.address), &ReadAhead::new(16 << 20), &remote).unwrap()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// The values of all batches of an epoch.
fn epoch(table: &StreamedTable) -> Vec<f32> {
    let mut loader = Loader::new(table, Batching::of(5000).shuffled_blocks(7, 50_000, 4)).unwrap();
    let (mut batches, mut values) = (loader.epoch(0), Vec::new());
    while let Some(batch) = batches.next_batch().unwrap() {
        values.extend(batch.features.iter().chain(batch.labels));
    }
    values
}

fn read_locally(path: &Path) -> Vec<f32> {
    epoch(&StreamedTable::open(path, &ReadAhead::new(16 << 20)).unwrap())
}

#[test]
fn a_table_that_nginx_serves_is_that_of_the_file() {
    let Some(nginx) = Nginx::start() else {
        return crate::not_run("a table that nginx serves", "nginx is not on the PATH");
    };
    nginx.put("t.safetensors", &super::ramp());
    let table = nginx.open("t.safetensors");
    let values = epoch(&table);
    assert_eq!(values.len(), 3 * super::N_ROWS);
    assert!(values == read_locally(&nginx.folder.path().join("t.safetensors")), "the epochs differ");
    table.verify().unwrap();

    nginx.put("t.safetensors", &super::ramp_of(1000));
    let (mut features, mut labels) = ([0.0; 2], [0.0; 1]);
    let error = table.gather(RowSelection::Numbers(&[700_000]), RowBuffers::new(&mut features, &mut labels)).unwrap_err();
    assert!(error.to_string().contains("t.safetensors"), "{error}");
    assert!(matches!(super::reason(error), RemoteError::Changed { .. }), "it is another table");
    assert_eq!(nginx.open("t.safetensors").n_rows(), 1000, "it can be opened again");
}
