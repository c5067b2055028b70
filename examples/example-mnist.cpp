// A network of one's own, trained on handwritten digits: MNIST if `regatta data get mnist` has
// fetched it, digits drawn on the fly otherwise.
#include <regatta/regatta.h>

#include <cstdio>

namespace {

// Two convolutions, the second with a shortcut around it.
regatta::Network digit_network() {
  regatta::Network net("digits", {.channels = 1, .height = 28, .width = 28});
  regatta::Layer x =
      net.conv("conv1", net.input(), {.channels = 16, .kernel = 5, .padding = 2, .bias = false});
  x = net.max_pool(net.relu(net.batch_norm("bn1", x)));
  const regatta::Layer shortcut = x;
  x = net.conv("conv2", x, {.channels = 16, .kernel = 3, .padding = 1, .bias = false});
  x = net.relu(net.add(net.batch_norm("bn2", x), shortcut));
  x = net.max_pool(x, {.kernel = 2});
  net.dense("logits", x, 10);
  return net;
}

}  // namespace

int main() try {
  regatta::TrainOptions options;
  options.data = regatta::has_data("mnist") ? "mnist" : "digits-synth";
  options.steps = 300;
  options.batch = 64;
  options.learning_rate = 0.01;
  options.on_epoch = [](const regatta::EpochRecord& epoch) {
    std::printf("epoch %d: training loss %.3f\n", static_cast<int>(epoch.epoch), epoch.train_loss);
  };
  const regatta::TrainReport report = regatta::train(digit_network(), options);

  const double accuracy = report.epochs.back().test_accuracy.value_or(0);
  std::printf("%s: %.2f%% of the test images are recognised, after training at %.0f images/s\n",
              options.data.c_str(), 100 * accuracy, report.images_per_second);
  return accuracy > 0.9 ? 0 : 1;
} catch (const regatta::Error& error) {
  std::fprintf(stderr, "example-mnist: %s\n", error.what());
  return 2;
}
