use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::program::kernels::{order_in_epoch, sequential_order};
use brisk_nn::tensor::{DType, Graph, Persistent, Windows};
use brisk_nn::{Augment, BatchSource};
use brisk_vision::{AugmentedImages, Border, Flip, ImageAugmentation};

/// Batch number `batch` of `n` images of a table with 12 bytes per row, in an epoch; the table is in windows of at most
/// `window_bytes`.
fn batch_of(augment: &dyn Augment, window_bytes: usize, [n, batch, epoch]: [usize; 3]) -> Vec<f32> {
    let device = Device::cpu().expect("the CPU");
    let pixels: Vec<u8> = (0..120).map(|i| (i * 37 % 256) as u8).collect();
    let table = Windows::new("images", DType::U8, 10, 12, window_bytes);
    table.write(&device, 0, &pixels).expect("pixels");
    let [mean, inv_std] = ["mean", "inv_std"].map(|name| Persistent::new(name, DType::F32, 12));
    device.write(&mean, &[100.0_f32; 12]).expect("means");
    device.write(&inv_std, &[0.01_f32; 12]).expect("deviations");
    let (order, state) = (Graph::order_buffer(), Graph::state_buffer());
    device.write(&order, &order_in_epoch(sequential_order(10, n as u32, 0), epoch as u32)).expect("an order");
    device.write(&state, &[batch as u32, 0, 0, 0]).expect("a state");

    let graph = Graph::inference("batch");
    let rows = graph.batch(&order, &state, n);
    let source = BatchSource { batch: &rows, features: &table, mean: &mean, inv_std: &inv_std };
    let images = augment.record(&graph, &source).x;
    let all = Persistent::new("all", DType::F32, (batch + 1) * images.n_elements());
    graph.store(&images, &state, &all);
    graph.advance(&state);
    graph.compile(&device).expect("a program").run(1).expect("a batch");
    let values: Vec<f32> = device.read(&all).expect("the batch");
    values[batch * images.n_elements()..].to_vec()
}

fn augmented(augmentation: ImageAugmentation) -> AugmentedImages {
    AugmentedImages { image: [2, 2, 3], augmentation }
}

const LIGHT: ImageAugmentation =
    ImageAugmentation { pad: 1, border: Border::Reflect, flip: Flip::Random, cutout: 1, brightness: 0.1, contrast: 0.1, seed: 3 };

#[test]
fn an_image_is_the_same_in_any_batch_and_in_any_window() {
    let augment = augmented(LIGHT);
    let in_tens = batch_of(&augment, 1 << 20, [10, 0, 4]);
    let in_fives = [0, 1].map(|batch| batch_of(&augment, 1 << 20, [5, batch, 4])).concat();
    assert_eq!(in_tens, in_fives, "batches of 5 and of 10");
    assert_eq!(in_tens, batch_of(&augment, 40, [10, 0, 4]), "a table in windows of three images");
}

/// Images 4 to 8 of the table, as a separate table.
#[test]
fn images_of_a_part_of_a_table_look_as_in_the_whole_table() {
    let expected = &batch_of(&augmented(LIGHT), 1 << 20, [10, 0, 4])[4 * 12..9 * 12];
    let device = Device::cpu().expect("the CPU");
    let pixels: Vec<u8> = (4 * 12..9 * 12).map(|i| (i * 37 % 256) as u8).collect();
    let [table, ids] = [("images", DType::U8, 12), ("ids", DType::U32, 1)]
        .map(|(name, dtype, n_cols)| Windows::new(name, dtype, 5, n_cols, 1 << 20));
    table.write(&device, 0, &pixels).expect("pixels");
    ids.write(&device, 0, &[4_u32, 5, 6, 7, 8]).expect("ids");
    let [mean, inv_std] = ["mean", "inv_std"].map(|name| Persistent::new(name, DType::F32, 12));
    device.write(&mean, &[100.0_f32; 12]).expect("means");
    device.write(&inv_std, &[0.01_f32; 12]).expect("deviations");
    let (order, state) = (Graph::order_buffer(), Graph::state_buffer());
    device.write(&order, &order_in_epoch(sequential_order(5, 5, 0), 4)).expect("an order");
    device.write(&state, &[0_u32; 4]).expect("a state");

    let graph = Graph::inference("part");
    let batch = graph.batch(&order, &state, 5).of_part(&ids);
    let reversed = batch.with_rows(&graph.constant_codes("reversed", &[4, 3, 2, 1, 0], &[5]));
    let stored = [&batch, &reversed].map(|batch| {
        let source = BatchSource { batch, features: &table, mean: &mean, inv_std: &inv_std };
        let images = augmented(LIGHT).record(&graph, &source).x;
        let all = Persistent::new("all", DType::F32, images.n_elements());
        graph.store(&images, &state, &all);
        all
    });
    graph.advance(&state);
    graph.compile(&device).expect("a program").run(1).expect("batches");
    let [batch, reversed] = stored.map(|all| device.read::<f32>(&all).expect("a batch"));
    assert_eq!(batch, expected);
    assert_eq!(reversed.chunks(12).rev().collect::<Vec<_>>().concat(), expected, "other rows of the part");
}

#[test]
fn epochs_and_seeds_differ() {
    let images = batch_of(&augmented(LIGHT), 1 << 20, [10, 0, 0]);
    assert_ne!(images, batch_of(&augmented(LIGHT), 1 << 20, [10, 0, 1]), "another epoch");
    assert_ne!(images, batch_of(&augmented(ImageAugmentation { seed: 4, ..LIGHT }), 1 << 20, [10, 0, 0]), "another seed");
}

#[test]
fn images_that_the_rows_are_not_are_refused() {
    let device = Device::cpu().expect("the CPU");
    let table = Windows::new("images", DType::U8, 10, 12, 1 << 20);
    let [mean, inv_std] = ["mean", "inv_std"].map(|name| Persistent::new(name, DType::F32, 12));
    let (order, state) = (Graph::order_buffer(), Graph::state_buffer());
    let graph = Graph::inference("batch");
    let rows = graph.batch(&order, &state, 5);
    let source = BatchSource { batch: &rows, features: &table, mean: &mean, inv_std: &inv_std };
    AugmentedImages { image: [3, 3, 3], ..augmented(LIGHT) }.record(&graph, &source);
    let error = graph.compile(&device).expect_err("27 values are not a row of 12").to_string();
    assert!(
        error.starts_with("augment_images: `image` has shape [3, 3, 3], expected 12 values, as a row of the table has"),
        "{error}"
    );
}
