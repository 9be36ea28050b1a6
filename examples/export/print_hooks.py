"""Print `name: max=0.123456, mean=0.012345` for each leaf module, in execution order: attach(model), model(x)."""


def attach(model):
    def hook(name):
        def show(module, args, output):
            y = (output[0] if isinstance(output, (tuple, list)) else output).detach().float()
            print(f"{name}: max={y.max().item():.6f}, mean={y.mean().item():.6f}")
        return show
    return [m.register_forward_hook(hook(name)) for name, m in model.named_modules() if not list(m.children())]
