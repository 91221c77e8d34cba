use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{DType, Graph, Persistent, Tensor};
use brisk_nn::{Bound, Module, ParametersBuilder};
use brisk_vision::{View, WithViews};

/// Returns the images unchanged, one per row.
#[derive(Debug)]
struct Pixels;

impl Module for Pixels {
    fn forward(&self, _: &Bound, x: &Tensor) -> Tensor {
        x.reshape(&[x.shape()[0], 6])
    }
}

#[track_caller]
fn check(views: Vec<View>, expected: &[f32]) {
    let device = Device::cpu().expect("the CPU");
    let params = ParametersBuilder::new().build(0);
    let graph = Graph::inference("views");
    let images = graph.constant("images", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0], &[2, 6]);
    let y = WithViews { model: Pixels, image: [2, 3, 1], views }.forward(&params.bind(&graph), &images);
    let (state, all) = (Graph::state_buffer(), Persistent::new("all", DType::F32, 12));
    graph.store(&y, &state, &all);
    params.write_initial(&device).expect("no parameters");
    graph.compile(&device).expect("a program").run(1).expect("views");
    let found: Vec<f32> = device.read(&all).expect("the outputs");
    assert_eq!(found[..6], *expected, "the first image");
    assert!(
        found[6..].iter().zip(expected).all(|(found, expected)| (found - 10.0 * expected).abs() < 1e-4),
        "the second: {found:?}"
    );
}

fn view(is_mirrored: bool, shift: [i32; 2]) -> Vec<View> {
    vec![View { weight: 1.0, is_mirrored, shift }]
}

#[test]
fn views_move_and_mirror_images() {
    check(View::plain(), &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    check(view(true, [0, 0]), &[3.0, 2.0, 1.0, 6.0, 5.0, 4.0]);
    // One pixel down and to the right: the first row and column are reflected at the edge.
    check(view(false, [1, 1]), &[5.0, 4.0, 5.0, 2.0, 1.0, 2.0]);
    check(view(false, [-1, -1]), &[5.0, 6.0, 5.0, 2.0, 3.0, 2.0]);
    check(view(true, [1, 0]), &[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
}

#[test]
fn outputs_are_averaged_by_weight() {
    check(View::mirrored(), &[2.0, 2.0, 2.0, 5.0, 5.0, 5.0]);
    assert_eq!(View::six().iter().map(|view| view.weight).sum::<f32>(), 1.0, "weights add up to 1");
    // 1/4 of the image and its mirror image, and 1/8 of the moved ones and their mirror images.
    check(View::six(), &[3.5; 6]);
    let equal: Vec<View> = View::mirrored().into_iter().map(|view| View { weight: 3.0, ..view }).collect();
    check(equal, &[2.0, 2.0, 2.0, 5.0, 5.0, 5.0]);
}

#[test]
fn weights_and_shifts_that_make_no_mean_are_refused() {
    let weighted = |weight| View { weight, is_mirrored: false, shift: [0, 0] };
    let wrong =
        [vec![], vec![weighted(0.0)], vec![weighted(2.0), weighted(-1.0)], vec![weighted(f32::NAN)], view(false, [0, -3])];
    for views in wrong {
        let graph = Graph::inference("views");
        let images = graph.constant("images", &[1.0; 6], &[1, 6]);
        let bound = ParametersBuilder::new().build(0).bind(&graph);
        WithViews { model: Pixels, image: [2, 3, 1], views }.forward(&bound, &images);
        let error = graph.check().expect_err("no mean of views").to_string();
        assert!(error.starts_with("views: ") && error.contains("of images of 2 × 3"), "{error}");
    }
}
