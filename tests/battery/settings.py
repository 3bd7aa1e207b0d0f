"""The settings that have policies, by name."""

from battery.arms_setting import ArmsSetting
from battery.cases import Setting
from battery.populations_setting import AgentsSetting
from battery.users_setting import UsersSetting

_POPULATIONS = AgentsSetting()
SETTINGS: dict[str, Setting] = {
    "arms": ArmsSetting(),
    "users": UsersSetting(),
    "diffusion": _POPULATIONS,
    "dynamics": _POPULATIONS,
}
