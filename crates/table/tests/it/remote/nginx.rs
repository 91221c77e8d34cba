//! Tables on a web server that others wrote.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use brisk_loader::{Batching, Loader, RowBuffers, RowSelection, RowSource as _};
use brisk_table::{CacheFolder, ReadAhead, Remote, RemoteError, RemoteOptions, StreamedTable};

use super::installed::{Installed, SERVERS, installed};

/// Serves the files of a folder.
struct Nginx(Installed);

impl Nginx {
    /// `None`, after a message, if it is not installed.
    fn start() -> Option<Self> {
        installed(&["nginx"], &["-v"], "nginx", SERVERS, "a table that nginx serves").map(|nginx| {
            Self(Installed::start(|folder, address| {
                let at = folder.display();
                let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
                    .map(|kind| format!("{kind}_temp_path {at}/{kind};\n"))
                    .concat();
                let settings = format!(
                    "daemon off;\nmaster_process off;\npid {at}/pid;\nerror_log stderr;\nevents {{}}\n\
                     http {{\naccess_log off;\n{temporary}server {{ listen {address}; root {at}; }}\n}}\n"
                );
                fs::write(folder.join("settings"), settings).unwrap();
                let mut command = Command::new(nginx);
                command.arg("-p").arg(folder).arg("-c").arg(folder.join("settings")).args(["-e", "stderr"]);
                command
            }))
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.folder.path().join(name)
    }

    /// Writes a file, which takes the place of another of that name.
    fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.file("new"), bytes).unwrap();
        fs::rename(self.file("new"), self.file(name)).unwrap();
    }

    fn open(&self, name: &str) -> StreamedTable {
        let remote = Remote::new(RemoteOptions { memory_bytes: 0, ..super::options(CacheFolder::Off) }).unwrap();
        StreamedTable::open_url(&format!("http://{}/{name}", self.0.address), &ReadAhead::new(16 << 20), &remote).unwrap()
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
    let Some(nginx) = Nginx::start() else { return };
    nginx.put("t.safetensors", &super::ramp());
    let table = nginx.open("t.safetensors");
    let values = epoch(&table);
    assert_eq!(values.len(), 3 * super::N_ROWS);
    assert!(values == read_locally(&nginx.file("t.safetensors")), "the epochs differ");
    table.verify().unwrap();

    nginx.put("t.safetensors", &super::ramp_of(1000));
    let (mut features, mut labels) = ([0.0; 2], [0.0; 1]);
    let error = table.gather(RowSelection::Numbers(&[700_000]), RowBuffers::new(&mut features, &mut labels)).unwrap_err();
    assert!(error.to_string().contains("t.safetensors"), "{error}");
    assert!(matches!(super::reason(error), RemoteError::Changed { .. }), "it is another table");
    assert_eq!(nginx.open("t.safetensors").n_rows(), 1000, "it can be opened again");
}
