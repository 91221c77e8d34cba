//! Other programs read our files, and we read their files.

use std::fs;
use std::path::Path;
use std::process::Command;

use brisk_table::{DType, LabelsFrom, Schema, Table, TableWriter, TensorNames, Weights};
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

#[test]
fn the_reference_implementation_reads_our_files() {
    let (_folder, path) = crate::scratch();
    crate::table::write_ramp(&path, 1000);
    let bytes = fs::read(&path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let features = file.tensor("features").unwrap();
    assert_eq!((features.dtype(), features.shape()), (safetensors::Dtype::F32, &[1000, 2][..]));
    assert_eq!(features.data(), Table::open(&path).unwrap().row_bytes(0..1000).unwrap());
    assert_eq!(file.tensor("labels").unwrap().shape(), [1000]);
}

#[test]
fn we_read_the_files_of_the_reference_implementation() {
    let (_folder, path) = crate::scratch();
    let features: Vec<u8> = (0..6).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let labels: Vec<u8> = (0..3_i64).flat_map(i64::to_le_bytes).collect();
    let tensors = [
        ("features", TensorView::new(safetensors::Dtype::F32, vec![3, 2], &features).unwrap()),
        ("labels", TensorView::new(safetensors::Dtype::I64, vec![3], &labels).unwrap()),
        ("checksums", TensorView::new(safetensors::Dtype::U8, vec![1], &[9]).unwrap()),
    ];
    fs::write(&path, safetensors::serialize(tensors, None).unwrap()).unwrap();
    let table = Table::open(&path).unwrap();
    assert_eq!(table.rows::<f32>(1..3).unwrap(), [2.0, 3.0, 4.0, 5.0]);
    assert_eq!(table.labels::<i64>().unwrap(), [0, 1, 2]);
    assert!(table.statistics().is_none() && table.column_names().is_empty());
    assert!(table.verify().unwrap_err().to_string().contains("has no checksums"));
}

/// A Python with safetensors for the test of that name; if there is none, reports that the test did not run.
pub(crate) fn python(test: &str) -> Option<String> {
    let python = std::env::var("BRISK_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_modules = Command::new(&python).args(["-c", "import safetensors, numpy"]).output();
    if !has_modules.is_ok_and(|output| output.status.success()) {
        let why = format!("`{python}` lacks safetensors or numpy; name one that has them in BRISK_PYTHON");
        crate::not_run(test, &why);
        return None;
    }
    Some(python)
}

const PYTHON: &str = "
import json, struct, sys, zlib
import numpy, safetensors
from safetensors.numpy import load_file
path = sys.argv[1]
t = load_file(path)
x, y, w = t['features'], t['labels'], t['weights']
assert x.shape == (5000, 3) and x.dtype == numpy.float32, (x.shape, x.dtype)
assert (x[:, 0] == numpy.arange(5000)).all() and (y == x[:, 0] % 2).all() and (w == 1 + y).all()
with safetensors.safe_open(path, 'np') as f:
    m = f.metadata()
assert json.loads(m['columns']) == ['a', 'b \"quoted\"', 'ü'], m['columns']
s = json.loads(m['statistics'])
assert numpy.allclose(s['mean'], x.astype(float).mean(0)) and numpy.allclose(s['std'], x.astype(float).std(0)), s
# As the format says: the header, then each MiB of the tensors before the sums.
b = open(path, 'rb').read()
start = 8 + struct.unpack('<Q', b[:8])[0]
sums = t['checksums']
data = b[start:len(b) - sums.nbytes]
assert start % 4096 == 0
assert sums.tolist() == [zlib.crc32(b[:start])] + [zlib.crc32(data[i:i + 2**20]) for i in range(0, len(data), 2**20)]
print('ok')
";

#[test]
fn python_reads_our_files() {
    let Some(python) = python("python_reads_our_files") else { return };
    let (_folder, path) = crate::scratch();
    let schema = Schema { weights: Weights::Present, ..Schema::named(["a", "b \"quoted\"", "ü"]) };
    let mut writer = TableWriter::create(&path, schema).unwrap();
    for i in 0..5000 {
        let (x, y) = (i as f32, (i % 2) as f32);
        writer.push_weighted(&[x, x * 1e-3, -x], &[y], &[1.0 + y]).unwrap();
    }
    writer.finish().unwrap();
    check_python(&python, PYTHON, &path);
}

/// Runs `script` on the table at `path`; it ends by printing `ok`.
#[track_caller]
fn check_python(python: &str, script: &str, path: &Path) {
    let output = Command::new(python).args(["-c", script]).arg(path).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output.stdout.starts_with(b"ok"), "{errors}");
}

const READ_IMAGES: &str = "
import sys
import numpy
from safetensors.numpy import load_file
t = load_file(sys.argv[1])
x, y = t['features'], t['labels']
assert x.shape == (7, 3, 5, 1) and x.dtype == numpy.uint8 and (x == numpy.arange(7)[:, None, None, None]).all(), x
assert y.dtype == numpy.int64 and (y == -numpy.arange(7)).all(), y
print('ok')
";

#[test]
fn python_reads_our_images() {
    let Some(python) = python("python_reads_our_images") else { return };
    let (_folder, path) = crate::scratch();
    let schema = Schema { dtype: DType::U8, label_dtype: DType::I64, ..Schema::shaped(&[3, 5, 1]) };
    let mut writer = TableWriter::create(&path, schema).unwrap();
    for i in 0..7_u8 {
        writer.push(&[i; 15], &[-i64::from(i)]).unwrap();
    }
    writer.finish().unwrap();
    check_python(&python, READ_IMAGES, &path);
}

#[cfg(feature = "half")]
const READ_HALVES: &str = "
import sys
import numpy
from safetensors.numpy import load_file
x = load_file(sys.argv[1])['features']
assert x.dtype == numpy.float16 and (x == numpy.array([[0.5, -2], [65504, 0.25]])).all(), x
print('ok')
";

#[test]
#[cfg(feature = "half")]
fn python_reads_our_halves() {
    let Some(python) = python("python_reads_our_halves") else { return };
    let (_folder, path) = crate::scratch();
    let mut writer = TableWriter::create(&path, Schema { dtype: DType::F16, ..Schema::shaped(&[2]) }).unwrap();
    writer.push(&[0.5, -2.0, 65504.0, 0.25].map(half::f16::from_f32), &[0.0_f32, 1.0]).unwrap();
    writer.finish().unwrap();
    check_python(&python, READ_HALVES, &path);
}

const WRITE_THEIRS: &str = "
import sys
import numpy
from safetensors.numpy import save_file
n = 1001
save_file({
    'x': numpy.arange(n, dtype=numpy.float32),
    'images': numpy.arange(3 * n).reshape(n, 3).astype(numpy.uint8),
    'y': numpy.arange(n, dtype=numpy.int64).reshape(n, 1) % 7,
}, sys.argv[1])
print('ok')
";

#[test]
fn we_read_what_python_writes() {
    let Some(python) = python("we_read_what_python_writes") else { return };
    let (_folder, path) = crate::scratch();
    check_python(&python, WRITE_THEIRS, &path);
    let names = |features: &str| TensorNames {
        features: features.into(),
        labels: LabelsFrom::Tensor("y".into()),
        ..TensorNames::default()
    };
    let one_column = Table::open_named(&path, &names("x")).unwrap();
    assert!(one_column.rows::<f32>(0..1001).unwrap().iter().enumerate().all(|(i, &x)| x == i as f32), "rows differ");
    let images = Table::open_named(&path, &names("images")).unwrap();
    assert_eq!(images.rows::<u8>(1000..1001).unwrap(), [184, 185, 186]);
    for table in [one_column, images] {
        assert!(table.labels::<i64>().unwrap().iter().enumerate().all(|(i, &y)| y == i as i64 % 7), "labels differ");
    }
}
