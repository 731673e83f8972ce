"""From a network in torch to a policy file; the only part of policies that needs torch and onnx."""
