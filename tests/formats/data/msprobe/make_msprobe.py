import sys, json, torch, torch.nn as nn, torch.nn.functional as F
from msprobe.pytorch import PrecisionDebugger, seed_all
out, level, task, eps, mode = sys.argv[1:6]
p = out + '.config.json'
json.dump({"task": task, "dump_path": out, "rank": [], "step": [], "level": level, "enable_dataloader": False,
 "tensor": {"scope": [], "list": [], "data_mode": ["all"]},
 "statistics": {"scope": [], "list": [], "data_mode": ["all"], "summary_mode": mode}}, open(p, 'w'))
seed_all(7)
class Block(nn.Module):
    def __init__(s):
        super().__init__()
        s.norm = nn.LayerNorm(4, eps=float(eps)); s.fc = nn.Linear(4, 4)
    def forward(s, x, scale=1.0):
        return x + F.gelu(s.fc(s.norm(x)), approximate='tanh') * scale
class Net(nn.Module):
    def __init__(s):
        super().__init__()
        s.first = Block(); s.second = Block()
    def forward(s, x):
        x = s.first(x, scale=0.5)
        return torch.utils.checkpoint.checkpoint(s.second, x, 0.25, use_reentrant=False)
m = Net(); x = torch.randn(2, 3, 4) * 0.02
d = PrecisionDebugger(config_path=p)
d.start(model=m)
y = m(x)
if level != 'debug':
    y.sum().backward()
else:
    PrecisionDebugger.save({"y": y, "pair": [y * 2, 3]}, "kept")
    PrecisionDebugger.save(y, "kept")
d.stop(); d.step()
