"""The rooms that have policies, by name."""

from battery.agents_room import AgentsRoom
from battery.arms_room import ArmsRoom
from battery.cases import Room
from battery.users_room import UsersRoom

ROOMS: dict[str, Room] = {room.name: room for room in (ArmsRoom(), UsersRoom(), AgentsRoom())}
