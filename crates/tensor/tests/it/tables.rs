//! Tables in one buffer and in several have the same rows.

use brisk_tensor::program::Device;
use brisk_tensor::program::kernels::sequential_order;
use brisk_tensor::{DType, Error, Graph, Persistent, Windows};

const N_ROWS: usize = 23;
const N_COLS: usize = 3;
const BATCH: usize = 5;

/// The batches of an epoch, gathered from a table in windows of at most `max_bytes`: features and codes.
fn epoch(dtype: DType, max_bytes: usize) -> Result<(Vec<u32>, Vec<u32>), Error> {
    let device = Device::cpu()?;
    let table = Windows::new("table", dtype, N_ROWS, N_COLS, max_bytes);
    let codes = Windows::new("codes", DType::U32, N_ROWS, 2, max_bytes);
    let values: Vec<u8> = (0..N_ROWS * N_COLS).map(|i| (i * 7 % 256) as u8).collect();
    // Rows that lie in several windows are written at once.
    for (first, values) in [(0, &values[..7 * N_COLS]), (7, &values[7 * N_COLS..])] {
        match dtype {
            DType::U8 => table.write(&device, first, values)?,
            _ => table.write(&device, first, &values.iter().map(|&x| f32::from(x)).collect::<Vec<_>>())?,
        }
    }
    codes.write(&device, 0, &(0..2 * N_ROWS as u32).collect::<Vec<_>>())?;

    let (order, state) = (Graph::order_buffer(), Graph::state_buffer());
    let [mean, inv_std] = ["mean", "inv_std"].map(|name| Persistent::new(name, DType::F32, N_COLS));
    device.write(&mean, &[1.0_f32, 2.0, 3.0])?;
    device.write(&inv_std, &[0.5_f32, 2.0, 0.3])?;
    device.write(&order, &sequential_order(N_ROWS as u32, BATCH as u32, 0))?;
    let graph = Graph::inference("epoch");
    let batch = graph.batch(&order, &state, BATCH);
    let x = graph.gather(&batch, &table, &mean, &inv_std);
    let categories = graph.gather_categories(&batch, &codes);
    let all = Persistent::new("all", DType::F32, N_ROWS * N_COLS);
    graph.store(&x, &state, &all);
    // An embedding that maps each code to its number, so that codes can be read back.
    let numbers: Vec<f32> = (0..2 * N_ROWS).map(|i| i as f32).collect();
    let numbers = graph.constant("numbers", &numbers, &[2 * N_ROWS, 1]);
    let all_codes = Persistent::new("all codes", DType::F32, N_ROWS);
    graph.store(&numbers.embedding(&categories, 1, None), &state, &all_codes);
    graph.advance(&state);
    graph.compile(&device)?.run(N_ROWS.div_ceil(BATCH))?;
    let bits = |buffer| device.read::<f32>(buffer).map(|values| values.into_iter().map(f32::to_bits).collect());
    Ok((bits(&all)?, bits(&all_codes)?))
}

#[test]
fn windows_give_the_rows_of_the_whole_to_the_bit() -> Result<(), Error> {
    for dtype in [DType::F32, DType::U8] {
        let whole = epoch(dtype, usize::MAX)?;
        let x = f32::from_bits(whole.0[4 * N_COLS]);
        assert_eq!(x, (f32::from(4 * 3 * 7_u8) - 1.0) * 0.5, "row 4, column 0, standardised");
        assert_eq!(whole.1, (0..N_ROWS).map(|row| (2.0 * row as f32 + 1.0).to_bits()).collect::<Vec<_>>(), "codes");
        for max_bytes in [1, 12, 100, 131] {
            assert_eq!(epoch(dtype, max_bytes)?, whole, "{dtype:?} in windows of {max_bytes} bytes");
        }
    }
    Ok(())
}

#[track_caller]
fn check(dtype: DType, n_rows: usize, n_cols: usize, max_bytes: usize, expected: &[usize]) {
    let table = Windows::new("table", dtype, n_rows, n_cols, max_bytes);
    let found: Vec<_> = table.buffers().iter().map(Persistent::len_bytes).collect();
    assert_eq!(found, expected, "{n_rows} rows of {n_cols} {dtype:?} in {max_bytes}");
    assert_eq!(table.len_bytes(), n_rows * n_cols * dtype.size_bytes(), "in all");
}

#[test]
fn windows_hold_whole_rows_and_whole_words() {
    check(DType::F32, 4, 2, 32, &[32]);
    check(DType::F32, 4, 2, 31, &[24, 8]);
    check(DType::F32, 2, 2, 3, &[8, 8]);
    check(DType::U8, 5, 3, 7, &[3, 3, 3, 3, 3]);
    check(DType::U8, 5, 3, 8, &[6, 6, 3]);
    check(DType::U8, 5, 3, usize::MAX, &[15]);
}

#[test]
fn rows_that_are_not_there_cannot_be_written() -> Result<(), Error> {
    let (device, table) = (Device::cpu()?, Windows::new("table", DType::F32, 4, 2, 16));
    let message = |first: usize, values: &[f32]| table.write(&device, first, values).expect_err("not these rows").to_string();
    assert_eq!(message(0, &[0.0; 3]), "write: `values` has shape [3], expected whole rows of 2, from row 0 to at most 4");
    assert_eq!(message(3, &[0.0; 4]), "write: `values` has shape [4], expected whole rows of 2, from row 3 to at most 4");
    table.write(&device, 4, &[0.0_f32; 0])
}
