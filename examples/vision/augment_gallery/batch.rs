use anyhow::Result;
use brisk_loader::{RowBuffers, RowSelection, RowSource as _};
use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::program::kernels::{order_in_epoch, sequential_order};
use brisk_nn::tensor::{DType, Graph, Persistent, Windows};
use brisk_nn::{Augment, BatchSource};
use brisk_train::Standardisation;
use brisk_vision_examples::images::ImageRows;

/// An epoch, from 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Epoch(pub(crate) u32);

/// The first `n` images as they are in a training batch of an epoch, converted back to bytes: `[n, height, width, n_channels]`.
///
/// # Errors
/// If the augmentation does not fit the images, or the device is out of memory.
pub(crate) fn draw(
    device: &Device,
    rows: &ImageRows<'_>,
    augment: &dyn Augment,
    scale: &Standardisation,
    epoch: Epoch,
    n: usize,
) -> Result<Vec<u8>> {
    let n_cols = rows.n_cols();
    let (mut bytes, mut labels) = (vec![0; n * n_cols], vec![0.0; n]);
    rows.gather(RowSelection::Range(0..n), RowBuffers::new(&mut bytes, &mut labels))?;

    let table = Windows::new("images", DType::U8, n, n_cols, device.max_binding_bytes());
    table.write(device, 0, &bytes)?;
    let [mean, inv_std] = ["mean", "inv_std"].map(|name| Persistent::new(name, DType::F32, n_cols));
    device.write(&mean, scale.mean())?;
    device.write(&inv_std, scale.inv_std())?;

    let graph = Graph::inference("gallery");
    let (order, state) = (Graph::order_buffer(), Graph::state_buffer());
    let batch = graph.batch(&order, &state, n);
    let source = BatchSource { batch: &batch, features: &table, mean: &mean, inv_std: &inv_std };
    let augmented = augment.record(&graph, &source).x;
    let values = Persistent::new("augmented", DType::F32, n * n_cols);
    graph.store(&augmented, &state, &values);
    graph.advance(&state);
    let executable = graph.compile(device)?;
    device.write(&order, &order_in_epoch(sequential_order(u32::try_from(n)?, u32::try_from(n)?, 0), epoch.0))?;
    executable.run(1)?;

    let values: Vec<f32> = device.read(&values)?;
    let bytes = values.chunks_exact(n_cols).flat_map(|image| {
        // Saturating: values brighter than white become white.
        image.iter().zip(scale.mean()).zip(scale.inv_std()).map(|((value, mean), inv_std)| (value / inv_std + mean).round() as u8)
    });
    Ok(bytes.collect())
}
