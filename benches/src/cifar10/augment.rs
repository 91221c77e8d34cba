//! Augmented batches on the CPU executor, compared with torchvision.

use anyhow::{Result, bail};
use brisk_loader::Order;
use brisk_nn::tensor::{DType, Graph, Persistent};
use brisk_train::{CountFrom, Feed, FeedConfig, Standardisation};
use brisk_vision::{AugmentedImages, Flip, ImageAugmentation};

use super::images::{self, IMAGE};
use crate::options::{Options, Scale};
use crate::peer::Peer;
use crate::row::{Better, Row, Table};

const BATCH: usize = 500;

pub(super) fn run(options: &Options) -> Result<Table> {
    let device = &options.device;
    let n_images = if options.scale == Scale::Smoke { 2 * BATCH } else { 20 * BATCH };
    let rows = images::drawn(n_images, 1);
    let scale = Standardisation::of("images", &rows)?.per_channel(IMAGE[2])?;
    scale.write(device)?;
    let augmentation = ImageAugmentation { pad: 4, flip: Flip::Random, cutout: 8, ..ImageAugmentation::default() };
    let feed = Feed::new(device, "images", &rows, Order::Shuffled { seed: 5 }, BATCH, &FeedConfig::default())?;
    let feed = feed.augmented(std::rc::Rc::new(AugmentedImages { image: IMAGE, augmentation }));
    let graph = Graph::inference("augmentation");
    let state = Graph::state_buffer();
    let batch = feed.record(&graph, &scale, &state);
    // One value of each batch is kept, so that the batch must be computed.
    let kept = Persistent::new("kept", DType::F32, n_images / BATCH);
    graph.store(&batch.x.reshape(&[batch.x.n_elements()]).narrow(0, 0..1), &state, &kept);
    graph.advance(&state);
    let executable = graph.compile(device)?;
    let epoch = |epoch: u32| -> Result<f64> {
        device.write_at(&state, 0, &[0_u32])?;
        let start = std::time::Instant::now();
        feed.open(device, |open| {
            open.for_each_range(epoch, CountFrom::Epoch, usize::MAX, |turn| {
                executable.run(turn.n_batches)?;
                Ok(std::ops::ControlFlow::Continue(()))
            })
        })?;
        device.wait()?;
        Ok(n_images as f64 / start.elapsed().as_secs_f64())
    };
    let row = |ours, reference: Option<(&str, Vec<f64>)>, target| Row {
        suite: "cifar10",
        case: format!("augmentation: pad 4, crop, flip, cutout 8, standardise; batches of {BATCH}"),
        ours,
        unit: "images/s",
        reference: reference.map(|(name, figures)| (name.to_owned(), figures)),
        target,
        better: Better::More,
    };
    let mut torch = match &options.peers {
        None => None,
        Some(python) => {
            let n_threads = std::thread::available_parallelism()?.get();
            Some(Peer::python(python, "benches/peers/augment.py", &[BATCH.to_string(), n_threads.to_string()])?)
        }
    };
    let (mut ours, mut batched, mut single) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..=options.n_rounds {
        let figure = epoch(round as u32)?;
        let theirs = torch.as_mut().map(|torch| torch.ask("1")).transpose()?;
        if round == 0 {
            continue;
        }
        ours.push(figure);
        if let Some(theirs) = theirs {
            let [of_batch, of_image] = theirs[..] else { bail!("torchvision's side has two figures") };
            batched.push(of_batch);
            single.push(of_image);
        }
    }
    let rows = if torch.is_some() {
        vec![
            row(ours.clone(), Some(("torchvision, whole batches", batched)), Some(3.0)),
            row(ours, Some(("torchvision, image by image", single)), Some(20.0)),
        ]
    } else {
        vec![row(ours, None, None)]
    };
    Ok(Table { device: device.info().clone(), rows })
}
