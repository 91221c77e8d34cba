use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{Graph, Mode};
use brisk_nn::{EmaConfig, EmaStart, Module, ParametersBuilder};
use brisk_vision::{PAGE_RUNGS, Rates, Recipe};

/// Checks the number of parameters, and that the graph accepts a batch.
#[track_caller]
fn check(recipe: &Recipe, n_images: usize, n_parameters: usize) {
    let mut builder = ParametersBuilder::new();
    let network = recipe.build(&mut builder);
    let params = builder.build(0);
    let n_frozen: usize =
        params.buffers().iter().filter(|buffer| buffer.name() == "whiten.weight").map(|b| b.values().len()).sum();
    assert_eq!(params.n_trained() + n_frozen, n_parameters, "parameters with the frozen filters");
    for mode in [Mode::Training, Mode::Inference] {
        let graph = Graph::new("network", mode);
        let x = graph.constant("x", &vec![0.1; n_images * 3072], &[n_images, 3072]);
        let y = network.forward(&params.bind(&graph), &x);
        graph.check().unwrap_or_else(|error| panic!("{mode:?}: {error}"));
        assert_eq!(y.shape(), [n_images, 10], "{mode:?}");
    }
}

#[test]
fn the_recipes_networks_have_the_published_sizes() {
    // Weights, normalisation biases and whitening filters.
    check(&Recipe::page(), 32 * 16, 6_568_640 + 2_240 + 27 * 27);
    check(&Recipe::airbench(), 2, 1_971_640);
    check(&Recipe::muon(), 2, 1_971_640);
}

#[test]
fn the_narrow_recipes_fit_a_cpu() {
    // Weights, normalisation biases, and the whitening.
    check(&Recipe::page().narrow(), 128, 103_384 + 280 + 27 * 27);
    for recipe in [Recipe::airbench(), Recipe::muon()] {
        check(&recipe.narrow(), 2, 75_520 + 224 + (24 + 288));
    }
}

#[test]
fn every_rung_of_the_ladder_is_a_network() {
    for rung in 0..PAGE_RUNGS.len() {
        let recipe = Recipe::page_rung(rung).narrowed(&[8, 16, 32, 64], 64);
        let mut builder = ParametersBuilder::new();
        let network = recipe.build(&mut builder);
        let graph = Graph::training("network");
        let x = graph.constant("x", &vec![0.1; 64 * 3072], &[64, 3072]);
        let y = network.forward(&builder.build(0).bind(&graph), &x);
        graph.check().unwrap_or_else(|error| panic!("rung {rung}: {error}"));
        assert_eq!(y.shape(), [64, 10], "rung {rung}");
    }
}

#[test]
fn a_recipe_takes_images_of_any_size_that_pooling_leaves_pixels_of() {
    let recipes = [
        (Recipe::muon().narrowed(&[8, 8, 16], 32), [[9, 9, 1], [28, 28, 1], [12, 31, 4], [64, 48, 3]]),
        (Recipe::page().narrowed(&[8, 8, 8, 8], 32), [[8, 8, 1], [28, 28, 1], [12, 31, 4], [64, 48, 3]]),
    ];
    for (recipe, sizes) in recipes {
        for image in sizes {
            let recipe = recipe.clone().for_images(image, 7).expect("the network takes this size");
            let mut builder = ParametersBuilder::new();
            let network = recipe.build(&mut builder);
            let graph = Graph::training("network");
            let n_cols: usize = image.iter().product();
            let x = graph.constant("x", &vec![0.1; 32 * n_cols], &[32, n_cols]);
            let y = network.forward(&builder.build(0).bind(&graph), &x);
            graph.check().unwrap_or_else(|error| panic!("{image:?}: {error}"));
            assert_eq!(y.shape(), [32, 7], "{image:?}");
        }
    }
    for (recipe, image, min_side) in [
        (Recipe::muon(), [8, 32, 3], 9),
        (Recipe::airbench(), [32, 8, 3], 9),
        (Recipe::page(), [32, 7, 3], 8),
        (Recipe::page(), [32, 32, 0], 8),
    ] {
        let error = recipe.for_images(image, 10).expect_err("no pixels are left").to_string();
        assert!(error.contains(&format!("{image:?}")) && error.contains(&format!("at least {min_side} pixels")), "{error}");
    }
}

#[test]
fn a_batch_that_is_not_of_whole_ghost_batches_is_refused() {
    let mut builder = ParametersBuilder::new();
    let network = Recipe::page().narrow().build(&mut builder);
    let params = builder.build(0);
    for n_images in [16, 40] {
        let graph = Graph::training("network");
        let x = graph.constant("x", &vec![0.1; n_images * 3072], &[n_images, 3072]);
        network.forward(&params.bind(&graph), &x);
        let error = graph.check().expect_err("ghost batches have 32 images").to_string();
        let expected = format!("batch_norm: a batch of {n_images} rows for ghost batches of 32");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn rates_follow_the_authors_formulas() {
    let page = Recipe::page();
    let schedule = page.schedule(50_000);
    let n_steps = page.n_steps(50_000);
    assert_eq!(n_steps, 970, "10 epochs of 97 steps");
    for (step, expected) in [(97, 0.5), (194, 1.0), (400, 0.681_44), (776, 0.1), (970, 0.1)] {
        let found = schedule.rate(step - 1, n_steps);
        assert!((found - expected).abs() < 1e-5, "step {step}: {found}, expected {expected}");
    }
    let airbench = Recipe::airbench();
    assert_eq!(airbench.n_steps(50_000), 476, "9.9 epochs of 48 steps");
    let schedule = airbench.schedule(50_000);
    for (step, expected) in [(0, 0.2), (109, 1.0), (475, 0.07 + 0.93 / 367.0)] {
        let found = schedule.rate(step, 476) / (1024.0 * 1.464_84e-3);
        assert!((found - expected).abs() < 1e-4, "step {step}: {found}, expected {expected}");
    }
    let muon = Recipe::muon();
    assert_eq!(muon.n_steps(50_000), 200, "8 epochs of 25 steps");
    assert!((muon.schedule(50_000).rate(50, 200) - 0.75).abs() < 1e-9, "1 - t / T");
}

#[test]
fn schedules_keep_their_shape_in_shorter_runs() {
    let page = Recipe::page().with_epochs(5.0);
    let n_steps = page.n_steps(50_000);
    let (short, long) = (page.schedule(50_000), Recipe::page().schedule(50_000));
    for step in [0.1, 0.2, 0.5, 0.79, 0.81, 1.0].map(|share| (share * n_steps as f64) as usize) {
        let (found, expected) = (short.rate(step, n_steps), long.rate(2 * step, 2 * n_steps));
        assert!((found - expected).abs() < 0.01, "step {step}: {found}, expected {expected}");
    }
    for recipe in [Recipe::page(), Recipe::airbench(), Recipe::muon()] {
        for n_epochs in [0.5, 1.0, 2.0] {
            let recipe = recipe.clone().narrowed(&[8, 8, 8, 8], 32).with_epochs(n_epochs);
            let n_steps = recipe.n_steps(70);
            let schedule = recipe.schedule(70);
            schedule.check(n_steps).unwrap_or_else(|error| panic!("{n_epochs} epochs: {error}"));
            assert!((0..n_steps).all(|step| schedule.rate(step, n_steps).is_finite()), "{n_epochs} epochs");
        }
    }
}

#[test]
fn the_last_rungs_of_the_ladder_are_averaged_as_by_the_author() {
    for rung in 0..PAGE_RUNGS.len() {
        let ema = Recipe::page_rung(rung).ema(50_000);
        assert_eq!(ema.is_some(), rung >= 8, "rung {rung}");
        let Some(EmaConfig { decay, every, first_step, start }) = ema else { continue };
        assert!((decay - 0.99_f32.powi(5)).abs() < 2e-3, "rung {rung}: decay {decay}");
        assert_eq!((every, first_step, start), (5, 1, EmaStart::Given), "rung {rung}");
    }
    assert_eq!([Recipe::airbench(), Recipe::muon()].map(|recipe| recipe.ema(50_000)), [None; 2]);
}

#[test]
fn the_first_loss_is_that_of_a_guess() {
    let device = Device::cpu().expect("the CPU");
    let philox = brisk_nn::Philox::new(1);
    let images: Vec<f32> = (0..32 * 3072).map(|i| philox.normal(0, i as u64)).collect();
    for recipe in [Recipe::muon().narrowed(&[8, 16, 32], 32), Recipe::page().narrowed(&[8, 16, 32, 64], 32)] {
        let mut builder = ParametersBuilder::new();
        let network = recipe.build(&mut builder);
        let mut params = builder.build(3);
        recipe.initialise(&network, &mut params, &device, &images).expect("starting values");
        let graph = Graph::training("network");
        let x = graph.constant("x", &images, &[32, 3072]);
        let logits = network.forward(&params.bind(&graph), &x);
        let labels = graph.constant_codes("labels", &(0..32).map(|i| i % 10).collect::<Vec<u32>>(), &[32]);
        let weights = graph.constant("weights", &[1.0; 32], &[32]);
        let loss = logits.cross_entropy(&labels, &weights, brisk_nn::tensor::CrossEntropyOptions::default());
        let (state, losses) = (Graph::state_buffer(), brisk_nn::tensor::Persistent::new("loss", brisk_nn::tensor::DType::F32, 1));
        graph.store(&loss, &state, &losses);
        params.write_initial(&device).expect("parameters");
        graph.compile(&device).expect("a program").run(1).expect("a forward pass");
        let loss = device.read::<f32>(&losses).expect("the loss")[0];
        assert!((loss - 10.0_f32.ln()).abs() < 0.1, "{loss}, expected about ln 10");
    }
}

/// With 8 images per batch and the rates for 64, biases fall until all activations vanish: the loss is that of a constant.
#[test]
fn batches_of_a_few_images_have_lower_rates() {
    let rates = |recipe: &Recipe| match recipe.rates {
        Rates::Page { peak, floor, .. } => [peak, floor],
        Rates::Airbench { peak, .. } => [peak, 0.0],
        Rates::Muon { head, biases, .. } => [head, biases],
        ref other => panic!("{other:?}"),
    };
    for recipe in [Recipe::page(), Recipe::airbench(), Recipe::muon()] {
        let of = |batch_rows| rates(&recipe.clone().with_batch_rows(batch_rows));
        assert_eq!(of(64), rates(&recipe));
        assert_eq!(of(32), rates(&recipe).map(|rate| rate / 2.0));
        let there_and_back = recipe.clone().with_batch_rows(8).with_batch_rows(recipe.batch_rows);
        assert_eq!(rates(&there_and_back), rates(&recipe));
    }
}
